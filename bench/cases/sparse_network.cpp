#include "bench/cases/sparse_network.h"

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "bench/cases/compared_networks.h"
#include "bench/cases/sparse_cases.h"
#include "bench/difference.h"
#include "bench/infer_workload.h"
#include "bench/named_workloads.h"
#include "compress/formats/sparse_layer.h"
#include "compress/patterns/builtin.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "layers/conv2d.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kSide = 224;
constexpr std::int64_t kClasses = 1000;
constexpr std::int64_t kComparedSteps = 2;  // the second loss depends on the first step's gradients

std::string shape_of(const SparseNetwork& of) { return str(of.model, ' ', of.batch, 'x', kSide, 'x', kSide, "x3"); }

std::string text_of(const SparseNetwork& of) {
  return str(name_of(of.pattern), ' ', of.kernel, 'x', of.kernel, " of ", shape_of(of), ' ', name_of(of.phase));
}

std::vector<Conv2d*> chosen_layers(Module& network, const SparseNetwork& of) {
  std::vector<Conv2d*> chosen;
  for_each_module(network, [&](Module& module) {
    auto* const conv = dynamic_cast<Conv2d*>(&module);
    if (conv == nullptr || conv->options().groups != 1) return;
    if (conv->options().kernel == Extent{of.kernel, of.kernel}) chosen.push_back(conv);
  });
  return chosen;
}

Measured measure_inference(const SparseNetwork& of, const Change& mask, const Change& sparse, std::int64_t rounds) {
  const ConstantWeights constant;
  const InferCase timed{.model = of.model, .side = kSide, .classes = kClasses, .batch = of.batch};
  InferWorkload ours(timed, sparse), dense(timed, mask);  // zeros in a dense weight take as much time as other numbers
  return measure_in_turn(
      {text_of(of),
       difference_of(dense.logits(), ours.logits()).relative(),
       {[&](std::int64_t count) { return ours.run(count); }, [&](std::int64_t count) { return dense.run(count); }}},
      rounds);
}

Measured measure_training(const SparseNetwork& of, const Change& mask, const Change& sparse, std::int64_t rounds) {
  WorkloadConfig config = workload_named(of.model);
  config.batch = of.batch;
  return measure_steps({text_of(of), config, sparse, mask, kComparedSteps}, rounds);
}

}  // namespace

KeptWeights mask_layers(Module& network, const SparseNetwork& of) {
  const std::unique_ptr<const Pattern> pattern = make_pattern(of.pattern);
  KeptWeights all;
  for (Conv2d* const conv : chosen_layers(network, of)) {
    all.layers += 1;
    all.elements += mask_randomly(conv->weight(), conv->path(), *pattern, of.density);
    all.of += conv->weight().value().numel();
  }
  return all;
}

void make_sparse(std::unique_ptr<Module>& network, const SparseNetwork& of) {
  mask_layers(*network, of);
  for (Conv2d* const conv : chosen_layers(*network, of)) {
    const std::string path = conv->path();
    replace_module(network, path, sparse_layer(*conv));
  }
}

std::vector<SparseNetwork> sparse_networks(const std::string& only) {
  const PatternConfig any{.pattern = "unstructured"}, tiles{.pattern = "tile", .group = 64};
  std::vector<SparseNetwork> all{{"mobilenet_v1", 1, Phase::inference, 1, any, .1, 2.0},
                                 {"mobilenet_v1", 32, Phase::inference, 1, any, .1, 2.0},
                                 {"resnet18", 16, Phase::training, 3, tiles, .25, 1.25}};
  std::erase_if(all, [&](const SparseNetwork& of) { return text_of(of).find(only) == std::string::npos; });
  return all;
}

Value measure_sparse_network(const SparseNetwork& of, std::int64_t rounds) {
  const DecisionScope decisions({.measure = true});
  KeptWeights kept;
  const Change mask = [&](std::unique_ptr<Module>& network) { kept = mask_layers(*network, of); };
  const Change sparse = [&](std::unique_ptr<Module>& network) { make_sparse(network, of); };
  const bool inference = of.phase == Phase::inference;
  const Measured measured = inference ? measure_inference(of, mask, sparse, rounds) : measure_training(of, mask, sparse, rounds);
  Value row = Value::map();
  row.set("format", str(name_of(of.pattern), ' ', of.kernel, 'x', of.kernel));
  row.set("density", kept.density());
  row.set("shape", shape_of(of));
  row.set("phase", inference ? "forward" : "training");
  row.set("weights", inference ? "constant" : "changing");
  row.set("layers", kept.layers);
  set_measured(row, "tessera, sparse", measured, of.target);
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  print_measured(fmt::format("{}, density {:.3f}", text_of(of), kept.density()), row);
  return row;
}

}  // namespace tessera::bench
