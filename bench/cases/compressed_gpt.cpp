#include "bench/cases/compressed_gpt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "bench/decode_workload.h"
#include "bench/named_workloads.h"
#include "bench/turns.h"
#include "compress/formats/sparse_layer.h"
#include "compress/patterns/builtin.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "layers/linear.h"
#include "layers/svd_linear.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

constexpr double kShare = 0.25;  // of the multiply-adds, or of the weights
constexpr std::uint64_t kSeed = 1;
constexpr double kLossTolerance = 1e-3;
constexpr double kScoreTolerance = 1e-3;

struct Form {
  std::string name;  // for people
  Change compress;
  Change dense;  // to a network that computes the same
  std::int64_t compared_steps;  // whose losses are the same
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

// Random tiles, the others zero; the layers stay dense.
void mask(std::unique_ptr<Module>& network) {
  const std::unique_ptr<const Pattern> pattern = make_pattern({.pattern = "tile", .group = 64});
  for (const std::string& path : mlp_paths(*network)) {
    Parameter& weight = linear_at(*network, path).weight();
    const Tensor scores = Tensor::empty(weight.value().shape());
    fill_uniform(scores, RngStream(kSeed, "bench", path), 0, 1);
    const auto kept = std::llround(kShare * static_cast<double>(scores.numel()));
    weight.set_mask(pattern->project({&scores, 1}, kept).front());
  }
}

void make_sparse(std::unique_ptr<Module>& network) {
  const std::vector<std::string> paths = mlp_paths(*network);
  mask(network);
  for (const std::string& path : paths) replace_module(network, path, sparse_layer(find_module(*network, path)));
}

Form form_named(const std::string& name) {
  // Factors train otherwise than their product: the first loss alone is the same.
  if (name == "svd") return {"svd, a quarter of the multiply-adds", factor, multiply_out, 1};
  if (name == "tile") return {"tile of 64, 75 % zero", make_sparse, mask, 2};
  throw ConfigError(str("--compressed is '", name, "'; needs svd or tile"));
}

template <class Number>
double largest_difference(const std::vector<Number>& a, const std::vector<Number>& b) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double distance = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    difference = std::isnan(distance) ? INFINITY : std::max(difference, distance);
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
  }
  return difference / largest;
}

void check(const Form& form, double agreement, double tolerance) {
  TESSERA_CHECK(agreement <= tolerance, NumericError, "gpt2, ", form.name,
                ": differs from the dense network of the same function by ", agreement, "; ", tolerance, " is allowed");
}

Value timed(const std::string& name, const Samples& samples) {
  Value row = Value::map();
  row.set("name", name);
  row.set("ms", to_value(summarise(samples)));
  return row;
}

struct Measured {
  std::vector<Samples> samples;  // of the compressed network and the dense one
  double agreement;
};

struct Described {
  std::string phase, shape;
  std::int64_t batch;
  double target;
};

Value line_of(const CompressedRun& run, const Form& form, const Described& described, const Measured& measured) {
  const Samples &ours = measured.samples[0], &dense = measured.samples[1];
  Value row = Value::map();
  row.set("format", form.name);
  row.set("model", "gpt2");
  row.set("shape", described.shape);
  row.set("batch", described.batch);
  row.set("precision", "f32");
  row.set("phase", described.phase);
  row.set("rounds", run.rounds);
  row.set("factored", timed("tessera, compressed MLPs", ours));
  row.set("rival", timed("tessera, dense", dense));
  row.set("ratio", to_value(summarise(ratios(dense, ours))));
  row.set("target", described.target);
  row.set("agreement", measured.agreement);
  const double median = row.at("ratio").at("median").as_double();
  fmt::print("gpt2, {}, {}: {:.1f} ms, dense {:.1f} ms, {:.2f}x; target {}x: {}\n", form.name, described.phase,
             quantile(ours, 0.5), quantile(dense, 0.5), median, described.target, median >= described.target ? "met" : "missed");
  std::fflush(stdout);
  return row;
}

}  // namespace

Value measure_compressed_step(const CompressedRun& run) {
  const Form form = form_named(run.form);
  const DecisionScope decisions({.measure = true});
  const WorkloadConfig config = workload_named("gpt2");
  TrainWorkload ours(config, form.compress);
  Measured measured;
  measured.agreement =
      largest_difference(TrainWorkload(config, form.dense).run(form.compared_steps).loss, ours.run(form.compared_steps).loss);
  check(form, measured.agreement, kLossTolerance);
  TrainWorkload dense(config);  // without masks, which its optimiser would look at
  const std::vector<SelfTimed> sides{[&](std::int64_t count) { return ours.run(count).ms; },
                                     [&](std::int64_t count) { return dense.run(count).ms; }};
  measured.samples = time_in_turns(sides, run.rounds, calls_per_turn(sides));
  Value row = line_of(run, form, {"training", config.shape, config.batch, 1.25}, measured);
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

Value measure_compressed_decoding(const CompressedRun& run) {
  const Form form = form_named(run.form);
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  DecodeWorkload ours(gpt2_small(), "f32", form.compress), dense(gpt2_small(), "f32", form.dense);
  const Measured measured{.samples =
                              [&] {
                                const std::vector<SelfTimed> sides{[&](std::int64_t count) { return ours.run(count); },
                                                                   [&](std::int64_t count) { return dense.run(count); }};
                                return time_in_turns(sides, run.rounds, calls_per_turn(sides));
                              }(),
                          .agreement = largest_difference(dense.scores(), ours.scores())};
  check(form, measured.agreement, kScoreTolerance);
  const std::string shape = str(DecodeWorkload::kPrompt, " tokens in the cache");
  Value row = line_of(run, form, {"decoding", shape, 1, 1.35}, measured);
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

}  // namespace tessera::bench
