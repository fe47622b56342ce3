#include "train/report/sensitivity.h"

#include <algorithm>

#include "compress/patterns/builtin.h"
#include "compress/prune/scores.h"
#include "compress/prune/targets.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/run/evaluate.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

void check(const SensitivityOptions& options) {
  TESSERA_CHECK(!options.sparsities.empty() && std::ranges::is_sorted(options.sparsities, std::ranges::less_equal()) &&
                    std::ranges::all_of(options.sparsities, [](double sparsity) { return sparsity > 0 && sparsity < 1; }),
                ConfigError, "sensitivity: sparsities need to rise, above 0 and below 1");
  TESSERA_CHECK(PatternConfig{.pattern = options.pattern}.own_sparsity() == 0, ConfigError, "sensitivity: pattern ",
                options.pattern, " has a sparsity of its own");
  TESSERA_CHECK(options.drop >= 0, ConfigError, "sensitivity: the drop is ", options.drop, "; needs 0 or more");
}

class Prober {
 public:
  Prober(const SavedRun& saved, const SensitivityOptions& options)
      : saved_(saved), options_(options), pattern_(make_pattern({.pattern = options.pattern})) {}

  Evaluation evaluate() const {
    return evaluate_split(*saved_.model, split_of(saved_.data, "val", "sensitivity"), saved_.config);
  }

  const Metric& metric() const { return task_of(saved_.config.data).metrics().front(); }

  LayerSensitivity probe(const PrunedWeight& weight, double before) const {
    LayerSensitivity layer{.path = weight.path, .weights = weight.numel(), .metric = &metric(), .values = {}, .suggested = 0};
    const double drop = options_.drop / in_unit(metric(), 1);
    const Tensor value = weight.parameter->value().clone(), mask = weight.parameter->mask();
    const std::vector<Tensor> scores = scores_of("magnitude", {&weight, 1}, {});
    const std::int64_t present = weight.kept();
    bool within = true;
    for (const double sparsity : options_.sparsities) {
      const std::int64_t kept = budgets("layer", {&weight, 1}, sparsity).front().kept;
      weight.parameter->set_mask(pattern_->project(scores, std::min(kept, present)).front());
      layer.values.push_back(evaluate().deciding());
      within = within && metric().within(layer.values.back(), before, drop);
      if (within) layer.suggested = sparsity;
      weight.parameter->set_mask({});
      weight.parameter->set_value(value.clone());
      weight.parameter->set_mask(mask);
    }
    return layer;
  }

 private:
  const SavedRun& saved_;
  const SensitivityOptions& options_;
  std::unique_ptr<const Pattern> pattern_;
};

// "conv1" of "conv1.weight".
std::string layer_of(const std::string& weight) { return weight.substr(0, weight.rfind('.')); }

// The block that prunes each layer to its target; "" where none bears any.
std::string suggestion(const SensitivityReport& report) {
  double least = 1;
  std::string layers, targets;
  for (const LayerSensitivity& layer : report.layers) {
    if (layer.suggested > 0) least = std::min(least, layer.suggested);
  }
  for (const LayerSensitivity& layer : report.layers) {
    if (layer.suggested == 0) continue;
    layers += str(layers.empty() ? "" : ", ", layer_of(layer.path));
    if (layer.suggested == least) continue;
    targets += str("\n      - {layers: ", layer_of(layer.path), ", target: ", formatted("%g", layer.suggested), '}');
  }
  if (layers.empty()) return "";
  return str("\nprune:\n  layers: [", layers, "]", report.pattern == "unstructured" ? "" : str("\n  pattern: ", report.pattern),
             "\n  sparsity:\n    target: ", formatted("%g", least), targets.empty() ? "" : str("\n    targets:", targets), '\n');
}

}  // namespace

void LayerSensitivity::fields(Fields& f) {
  f.add("path", path, {.help = "of the weight"});
  f.add("weights", weights, {.help = "elements"});
  f.add(metric->key, values, {.help = "on val, at each of the sparsities"});
  f.add("suggested", suggested, {.help = "target whose loss is within the drop; 0: none"});
}

void SensitivityReport::fields(Fields& f) {
  f.add("run", run, {.help = "its folder"});
  f.add("stage", stage, {.help = "of the checkpoint"});
  f.add("step", step, {.help = "of the run"});
  f.add("pattern", pattern, {.help = "that weights were pruned to"});
  f.add("samples", samples, {.help = "of the val split"});
  f.add(metric->key, value, {.help = "of the network as it is"});
  f.add("sparsities", sparsities, {.help = "that were tried"});
  f.add("layers", layers, {.help = "weights that the pattern can hold"});
}

SensitivityReport sensitivity_of(Vfs& vfs, const RunFolder& run, const SensitivityOptions& options) {
  check(options);
  const SavedRun saved = open_saved_run(vfs, run, options.at, options.overrides, "sensitivity");
  PruneConfig every;
  every.layers = Value("*");
  every.pattern.pattern = options.pattern;
  std::vector<BlockProblem> problems;
  const std::vector<PrunedWeight> weights = pruned_weights(every, *saved.model, problems);
  TESSERA_CHECK(problems.empty(), ConfigError, "sensitivity: ", problems.front().message);
  const Prober prober(saved, options);
  const Evaluation before = prober.evaluate();
  SensitivityReport report{.run = run.path(),
                           .stage = saved.checkpoint.manifest.at("stage_name").as_string(),
                           .step = saved.checkpoint.step,
                           .pattern = options.pattern,
                           .samples = before.samples,
                           .metric = &prober.metric(),
                           .value = before.deciding(),
                           .sparsities = options.sparsities,
                           .layers = {}};
  for (const PrunedWeight& weight : weights) {
    if (options.before_layer) options.before_layer(weight.path);
    report.layers.push_back(prober.probe(weight, report.value));
  }
  return report;
}

std::string to_text(const SensitivityReport& report) {
  std::vector<std::vector<std::string>> rows{{"weight", "elements"}};
  std::vector<bool> right{false, true};
  for (const double sparsity : report.sparsities) {
    rows[0].push_back(str("at ", formatted("%g", 100 * sparsity), " %"));
    right.push_back(true);
  }
  rows[0].emplace_back("suggested");
  right.push_back(true);
  for (const LayerSensitivity& layer : report.layers) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {layer.path, str(layer.weights)};
    for (const double value : layer.values) row.push_back(text_of(*report.metric, value));
    row.push_back(layer.suggested > 0 ? formatted("%g", layer.suggested) : std::string("-"));
  }
  return str(report.run, ": stage ", report.stage, ", step ", report.step, "; ", report.pattern,
             ", one weight pruned at a time\n", "val ", report.metric->key, " as it is: ", text_of(*report.metric, report.value),
             " of ", report.samples, " samples\n\n", aligned(rows, right), suggestion(report));
}

}  // namespace tessera
