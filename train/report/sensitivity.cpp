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
                ConfigError, "sensitivity: --sparsity needs numbers that rise, above 0 and below 1");
  TESSERA_CHECK(PatternConfig{.pattern = options.pattern}.own_sparsity() == 0, ConfigError, "sensitivity: --pattern ",
                options.pattern, " has one sparsity of its own, by its N and M, so there is none to try");
  TESSERA_CHECK(options.drop >= 0, ConfigError, "sensitivity: --drop is ", options.drop, "; needs 0 or more");
}

// Restores the values and masks of a weight and its followers at the end of the scope.
class Untouched {
 public:
  explicit Untouched(const PrunedWeight& weight) {
    save(*weight.parameter);
    for (Parameter* const follower : weight.followers) save(*follower);
  }
  ~Untouched() {
    for (const Saved& saved : all_) {
      saved.parameter->set_mask({});
      saved.parameter->set_value(saved.value);
      saved.parameter->set_mask(saved.mask);
    }
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

 private:
  struct Saved {
    Parameter* parameter;
    Tensor value, mask;
  };
  // Setting a mask gives the parameter another tensor, so the value need not be copied here.
  void save(Parameter& parameter) { all_.push_back({&parameter, parameter.value(), parameter.mask()}); }

  std::vector<Saved> all_;
};

class Prober {
 public:
  Prober(const SavedRun& saved, const SensitivityOptions& options)
      : saved_(saved), options_(options), pattern_(make_pattern({.pattern = options.pattern})) {}

  Evaluation evaluate() const {
    return evaluate_split(*saved_.model, split_of(saved_.data, "val", "sensitivity"), saved_.config);
  }

  const Metric& metric() const { return task_of(saved_.config.data).metrics().front(); }

  WeightSensitivity probe(const PrunedWeight& weight, double before) const {
    WeightSensitivity found{.path = weight.path,
                            .layer = weight.layer,
                            .weights = weight.numel(),
                            .kept = weight.kept(),
                            .metric = &metric(),
                            .values = {},
                            .suggested = 0};
    const double drop = options_.drop / in_unit(metric(), 1);
    const std::vector<Tensor> scores = scores_of("magnitude", {&weight, 1}, {});
    bool within = true;
    for (const double sparsity : options_.sparsities) {
      const Untouched untouched(weight);
      weight.parameter->set_mask(pattern_->project(scores, std::min(kept_at(sparsity, weight.numel()), found.kept)).front());
      mask_followers({&weight, 1});
      found.values.push_back(evaluate().deciding());
      within = within && metric().within(found.values.back(), before, drop);
      if (within) found.suggested = sparsity;
    }
    return found;
  }

 private:
  const SavedRun& saved_;
  const SensitivityOptions& options_;
  std::unique_ptr<const Pattern> pattern_;
};

struct LayerTarget {
  std::string layer;
  double target = 1;  // the smallest target of its weights; 0: none
};

// One entry per layer; the weights of a layer are consecutive. Layers that would lose nothing are left out.
std::vector<LayerTarget> layer_targets(std::span<const WeightSensitivity> weights) {
  std::vector<LayerTarget> targets;
  for (const WeightSensitivity& weight : weights) {
    if (targets.empty() || targets.back().layer != weight.layer) targets.push_back({.layer = weight.layer});
    targets.back().target = std::min(targets.back().target, weight.suggested);
  }
  std::erase_if(targets, [&](const LayerTarget& each) {
    const auto has_more = [&](const WeightSensitivity& weight) {
      return weight.layer == each.layer && weight.kept > kept_at(each.target, weight.weights);
    };
    return each.target == 0 || std::ranges::none_of(weights, has_more);
  });
  return targets;
}

// The prune block that prunes each layer to its target; "" if no layer can be pruned.
std::string suggestion(const SensitivityReport& report) {
  double least = 1;
  std::string layers, targets;
  const std::vector<LayerTarget> suggested = layer_targets(report.layers);
  for (const LayerTarget& each : suggested) least = std::min(least, each.target);
  for (const LayerTarget& each : suggested) {
    layers += str(layers.empty() ? "" : ", ", each.layer);
    if (each.target == least) continue;
    targets += str("\n      - {layers: ", each.layer, ", target: ", formatted("%g", each.target), '}');
  }
  if (layers.empty()) return "";
  return str("\nprune:\n  layers: [", layers, "]", report.pattern == "unstructured" ? "" : str("\n  pattern: ", report.pattern),
             "\n  sparsity:\n    target: ", formatted("%g", least), targets.empty() ? "" : str("\n    targets:", targets), '\n');
}

}  // namespace

void WeightSensitivity::fields(Fields& f) {
  f.add("path", path, {.help = "of the weight"});
  f.add("weights", weights, {.help = "elements"});
  f.add("kept", kept, {.help = "of these, before"});
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
  f.add("left_out", left_out, {.help = "others, and layers that are sparse already, each with the reason"});
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
                           .layers = {},
                           .left_out = left_out(every, *saved.model)};
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
  for (const WeightSensitivity& layer : report.layers) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {layer.path, str(layer.weights)};
    for (const double value : layer.values) row.push_back(text_of(*report.metric, value));
    row.push_back(layer.suggested > 0 ? formatted("%g", layer.suggested) : std::string("-"));
  }
  std::string others;
  for (const std::string& each : report.left_out) others += str("\nleft out: ", each);
  if (!others.empty()) others += '\n';
  return str(report.run, ": stage ", report.stage, ", step ", report.step, "; ", report.pattern,
             ", one weight pruned at a time\n", "val ", report.metric->key, " as it is: ", text_of(*report.metric, report.value),
             " of ", report.samples, " samples\n\n", aligned(rows, right), others, suggestion(report));
}

}  // namespace tessera
