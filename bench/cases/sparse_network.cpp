#include "bench/cases/sparse_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "bench/cases/sparse_cases.h"
#include "bench/infer_workload.h"
#include "bench/named_workloads.h"
#include "bench/turns.h"
#include "compress/formats/sparse_layer.h"
#include "compress/patterns/builtin.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kSide = 224;
constexpr std::int64_t kClasses = 1000;
constexpr double kLogitTolerance = 1e-3;  // Winograd and the order of sums, through some thirty layers
constexpr double kLossTolerance = 1e-3;
constexpr std::int64_t kComparedSteps = 2;  // the second loss shows the first step's gradients

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

struct Kept {
  std::int64_t layers = 0, elements = 0, of = 0;
  double density() const { return static_cast<double>(elements) / static_cast<double>(of); }
};

// Masks of random scores, which zero what they do not keep; the layers stay dense.
Kept mask_layers(Module& network, const SparseNetwork& of) {
  const std::unique_ptr<const Pattern> pattern = make_pattern(of.pattern);
  Kept all;
  for (Conv2d* const conv : chosen_layers(network, of)) {
    const Shape& shape = conv->weight().value().shape();
    const Tensor scores = Tensor::empty(shape);
    fill_uniform(scores, RngStream(1, "bench", conv->path()), 0, 1);
    const std::int64_t kept = std::llround(of.density * static_cast<double>(shape.numel()));
    conv->weight().set_mask(pattern->project({&scores, 1}, kept).front());
    all.layers += 1;
    all.elements += kept;
    all.of += shape.numel();
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

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  TESSERA_CHECK(a.size() == b.size(), InternalError, "sparse_bench: ", a.size(), " logits and ", b.size());
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
  }
  return difference / largest;
}

double largest_difference(const std::vector<double>& losses, const std::vector<double>& others) {
  double difference = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    difference = std::max(difference, std::abs(losses[i] - others[i]) / std::abs(losses[i]));
  }
  return difference;
}

struct Measured {
  std::vector<Samples> samples;  // of the sparse network and the dense one
  double agreement;
};

Measured in_turn(const std::vector<SelfTimed>& sides, std::int64_t rounds, double agreement) {
  return {time_in_turns(sides, rounds, calls_per_turn(sides)), agreement};
}

Measured measure_inference(const SparseNetwork& of, const Change& mask, const Change& sparse, std::int64_t rounds) {
  const ConstantWeights constant;
  const InferCase timed{.model = of.model, .side = kSide, .classes = kClasses, .batch = of.batch};
  InferWorkload ours(timed, sparse), dense(timed, mask);  // zeros in a dense weight cost what other numbers cost
  const double agreement = largest_difference(dense.logits(), ours.logits());
  TESSERA_CHECK(agreement <= kLogitTolerance, NumericError, text_of(of), ": logits differ by ", agreement, " of the largest; ",
                kLogitTolerance, " is allowed");
  return in_turn({[&](std::int64_t count) { return ours.run(count); }, [&](std::int64_t count) { return dense.run(count); }},
                 rounds, agreement);
}

// The rival has no masks, which its optimiser would look at.
Measured measure_training(const SparseNetwork& of, const Change& mask, const Change& sparse, std::int64_t rounds) {
  WorkloadConfig config = workload_named(of.model);
  config.batch = of.batch;
  TrainWorkload ours(config, sparse);
  const double agreement =
      largest_difference(TrainWorkload(config, mask).run(kComparedSteps).loss, ours.run(kComparedSteps).loss);
  TESSERA_CHECK(agreement <= kLossTolerance, NumericError, text_of(of), ": losses differ by ", agreement, " of themselves; ",
                kLossTolerance, " is allowed");
  TrainWorkload dense(config);
  return in_turn(
      {[&](std::int64_t count) { return ours.run(count).ms; }, [&](std::int64_t count) { return dense.run(count).ms; }}, rounds,
      agreement);
}

Value timed(const std::string& name, const Samples& samples) {
  Value row = Value::map();
  row.set("name", name);
  row.set("ms", to_value(summarise(samples)));
  return row;
}

void print_row(const Value& row, const SparseNetwork& of) {
  const auto ms = [&](const char* side) { return row.at(side).at("ms").at("median").as_double(); };
  const Value& ratio = row.at("ratio");
  const double median = ratio.at("median").as_double();
  fmt::print("{:<60} density {:.3f} {:8.3f} ms, dense {:8.3f} ms {:5.2f}x ({:.2f}-{:.2f}) (target {:.2f}: {})\n", text_of(of),
             row.at("density").as_double(), ms("factored"), ms("rival"), median, ratio.at("p10").as_double(),
             ratio.at("p90").as_double(), of.target, median >= of.target ? "met" : "missed");
  std::fflush(stdout);
}

}  // namespace

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
  Kept kept;
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
  row.set("rounds", rounds);
  row.set("factored", timed("tessera, sparse", measured.samples[0]));
  row.set("rival", timed("tessera, dense", measured.samples[1]));
  row.set("ratio", to_value(summarise(ratios(measured.samples[1], measured.samples[0]))));
  row.set("target", of.target);
  row.set("agreement", measured.agreement);
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  print_row(row, of);
  return row;
}

}  // namespace tessera::bench
