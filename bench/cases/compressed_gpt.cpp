#include "bench/cases/compressed_gpt.h"

#include <memory>
#include <vector>

#include "bench/cases/compared_networks.h"
#include "bench/decode_workload.h"
#include "bench/difference.h"
#include "compress/formats/sparse_layer.h"
#include "compress/patterns/builtin.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/support/error.h"
#include "layers/linear.h"
#include "layers/svd_linear.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

constexpr double kShare = 0.25;  // of the multiply-adds, or of the weights
constexpr std::uint64_t kSeed = 1;
constexpr const char* kName = "tessera, compressed MLPs";

struct Form {
  std::string name;  // the name in tables and result rows
  Change compress;
  Change dense;  // to a dense network that computes the same function
  std::int64_t compared_steps;  // first steps, whose losses must agree
};

std::vector<std::string> mlp_paths(Module& network) {
  std::vector<std::string> paths;
  for_each_module(network, [&](const Module& module) {
    const bool linear = dynamic_cast<const Linear*>(&module) != nullptr;
    if (linear && module.path().find(".mlp.") != std::string::npos) paths.push_back(module.path());
  });
  return paths;
}

Linear& linear_at(Module& network, const std::string& path) { return dynamic_cast<Linear&>(find_module(network, path)); }

void factor(std::unique_ptr<Module>& network) {
  for (const std::string& path : mlp_paths(*network)) {
    const Linear& dense = linear_at(*network, path);
    const auto in = static_cast<double>(dense.options().in), out = static_cast<double>(dense.options().out);
    const auto rank = static_cast<std::int64_t>(kShare * in * out / (in + out));
    replace_module(network, path, SvdLinear::shaped_for(dense, rank));
    find_module(*network, path).reset_parameters(kSeed);
  }
}

void multiply_out(std::unique_ptr<Module>& network) {
  const std::vector<std::string> paths = mlp_paths(*network);
  factor(network);
  for (const std::string& path : paths) {
    replace_module(network, path, as_compressed(find_module(*network, path))->to_dense());
  }
}

// Keeps random tiles and zeroes the others. The layers stay dense.
void mask(std::unique_ptr<Module>& network) {
  const std::unique_ptr<const Pattern> pattern = make_pattern({.pattern = "tile", .group = 64});
  for (const std::string& path : mlp_paths(*network)) {
    mask_randomly(linear_at(*network, path).weight(), path, *pattern, kShare);
  }
}

void make_sparse(std::unique_ptr<Module>& network) {
  const std::vector<std::string> paths = mlp_paths(*network);
  mask(network);
  for (const std::string& path : paths) replace_module(network, path, sparse_layer(find_module(*network, path)));
}

Form form_named(const std::string& name) {
  // Factors train differently from their product, so only the first loss is the same.
  if (name == "svd") return {"svd, a quarter of the multiply-adds", factor, multiply_out, 1};
  if (name == "tile") return {"tile of 64, 75 % zero", make_sparse, mask, 2};
  throw ConfigError(str("--compressed is '", name, "'; needs svd or tile"));
}

struct Described {
  std::string model, phase, shape;
  std::int64_t batch;
};

std::string text_of(const Form& form, const Described& described) {
  return str(described.model, ", ", form.name, ", ", described.phase);
}

Value describe(const Form& form, const Described& described) {
  Value row = Value::map();
  row.set("format", form.name);
  row.set("model", described.model);
  row.set("shape", described.shape);
  row.set("batch", described.batch);
  row.set("precision", "f32");
  row.set("phase", described.phase);
  return row;
}

}  // namespace

Value measure_compressed_step(const WorkloadConfig& config, const CompressedRun& run) {
  const Form form = form_named(run.form);
  const Described described{config.model, "training", config.shape, config.batch};
  const DecisionScope decisions({.measure = true});
  const Measured measured =
      measure_steps({text_of(form, described), config, form.compress, form.dense, form.compared_steps}, run.rounds);
  Value row = describe(form, described);
  set_measured(row, kName, measured, 1.25);
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  print_measured(text_of(form, described), row);
  return row;
}

Value measure_compressed_decoding(const std::string& model, const models::Gpt& network, const CompressedRun& run) {
  const Form form = form_named(run.form);
  const Described described{model, "decoding", str(DecodeWorkload::kPrompt, " tokens in the cache"), 1};
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  DecodeWorkload ours(network, "f32", form.compress), dense(network, "f32", form.dense);
  const Measured measured = measure_in_turn(
      {text_of(form, described),
       difference_of(dense.scores(), ours.scores()).relative(),
       {[&](std::int64_t count) { return ours.run(count); }, [&](std::int64_t count) { return dense.run(count); }}},
      run.rounds);
  Value row = describe(form, described);
  set_measured(row, kName, measured, 1.35);
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  print_measured(text_of(form, described), row);
  return row;
}

}  // namespace tessera::bench
