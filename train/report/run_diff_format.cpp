#include <algorithm>
#include <cmath>
#include <optional>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/run_diff.h"

namespace tessera {
namespace {

constexpr std::size_t kListed = 40;  // most rows of a section in the printed text
constexpr std::size_t kTensors = 10;

using Rows = std::vector<std::vector<std::string>>;

std::string shown(const Value& value) {
  if (value.is_null()) return "-";
  return value.is_string() && !value.as_string().empty() ? value.as_string() : to_json(value);
}

// |a - b| of two numbers.
std::string apart(const KeyChange& change) {
  if (!change.before.is_number() || !change.after.is_number()) return "";
  return formatted("%.3g", std::abs(change.before.as_double() - change.after.as_double()));
}

// Only measured values get a distance. Between settings a distance means nothing.
std::string rows_of(const std::vector<KeyChange>& section, const std::string& indent, bool measured) {
  Rows rows{{"", "a", "b", measured ? "|a - b|" : ""}};
  for (std::size_t i = 0; i < std::min(section.size(), kListed); ++i) {
    const KeyChange& change = section[i];
    rows.push_back({indent + change.key, shown(change.before), shown(change.after), measured ? apart(change) : std::string()});
  }
  std::string text = aligned(rows, {false, true, true, true});
  if (section.size() > kListed) text += str(indent, "and ", section.size() - kListed, " more; --json lists all\n");
  return text;
}

std::string section(const char* name, const std::optional<std::vector<KeyChange>>& changes, bool measured = false) {
  if (!changes) return str(name, ": not compared\n");
  if (changes->empty()) return str(name, ": equal\n");
  return str(name, ": ", changes->size(), changes->size() == 1 ? " differs\n" : " differ\n", rows_of(*changes, "  ", measured));
}

std::string first_metric(const RunDiff& diff) {
  if (!diff.first_metric) return "";
  const FirstMetric& first = *diff.first_metric;
  return str("  first at step ", first.step, ", stage ", first.stage, " (line ", first.line, " of metrics.jsonl):\n",
             rows_of(first.values, "    ", true));
}

std::string weights(const RunDiff& diff) {
  if (!diff.weights) return "weights: not compared, no checkpoints\n";
  const std::vector<TensorDifference>& differing = diff.weights->differing;
  if (differing.empty()) return str("weights: all ", diff.weights->tensors, " tensors are equal to the byte\n");
  Rows rows{{"  tensor", "greatest |a - b|"}};
  for (const TensorDifference& tensor : greatest(differing, kTensors)) {
    rows.push_back({"  " + tensor.name, tensor.what.empty() ? formatted("%.6g", tensor.max_abs) : tensor.what});
  }
  return str("weights: ", differing.size(), " of ", diff.weights->tensors, " tensors differ, by name the first is ",
             differing.front().name, differing.size() > kTensors ? "; the greatest differences:\n" : ":\n",
             aligned(rows, {false, true}));
}

std::string side(char name, const DiffSide& side) {
  std::string text = str(name, ": ", side.path);
  if (!side.is_run) return text + ", an experiment file\n";
  if (side.step < 0) return text + ", no checkpoint\n";
  return text + str(", newest checkpoint at step ", side.step, ", stage ", side.stage, '\n');
}

struct MetricsDiff {
  std::vector<KeyChange> stages;
  std::optional<FirstMetric> first;

  void fields(Fields& f) {
    f.add("stages", stages, {.help = "last loss, last and best validation metric of each stage"});
    f.add("first", first, {.help = "the first line that differs; null when none does", .nullable = true});
  }
};

}  // namespace

std::string to_text(const RunDiff& diff) {
  std::string text = side('a', diff.a) + side('b', diff.b) + '\n' + section("keys", diff.keys);
  if (!diff.both_runs()) return text + "only keys are compared: an experiment file has nothing else\n";
  text += section("environment", diff.environment) + section("data", diff.data) + section("metrics", diff.metrics, true) +
          first_metric(diff) + section("decisions", diff.decisions) + section("layers", diff.layers, true) + weights(diff);
  for (const std::string& trouble : diff.trouble) text += "trouble: " + trouble + '\n';
  return text;
}

void DiffSide::fields(Fields& f) {
  const bool stands = step >= 0;
  f.add("path", path, {.help = "run folder or experiment file"});
  f.add("run", is_run, {.help = "it is a run"});
  f.add_computed("stage", stands ? std::optional(stage) : std::nullopt,
                 {.help = "of the newest checkpoint; null without one", .nullable = true});
  f.add_computed("step", stands ? std::optional(step) : std::nullopt,
                 {.help = "of the newest checkpoint; null without one", .nullable = true});
}

void FirstMetric::fields(Fields& f) {
  f.add("line", line, {.help = "of metrics.jsonl, from 1"});
  f.add("stage", stage, {.help = "of that line"});
  f.add("step", step, {.help = "of that line"});
  f.add("values", values, {.help = "those that differ"});
}

void WeightsDiff::fields(Fields& f) {
  f.add("tensors", tensors, {.help = "of both together"});
  f.add("differing", differing, {.help = "by name"});
}

void RunDiff::fields(Fields& f) {
  const std::optional<MetricsDiff> of_runs = both_runs() ? std::optional(MetricsDiff{metrics, first_metric}) : std::nullopt;
  f.add("a", a, {.help = "the one side"});
  f.add("b", b, {.help = "the other side"});
  f.add_computed("differ", differ(), {.help = "also when something was in the way of knowing"});
  f.add("keys", keys, {.help = "of the resolved experiment files"});
  f.add("environment", environment, {.help = "of env.json; null when not compared", .nullable = true});
  f.add("data", data, {.help = "fingerprint of the training data; null when not compared", .nullable = true});
  f.add_computed("metrics", of_runs, {.help = "null unless both sides are runs", .nullable = true});
  f.add("decisions", decisions, {.help = "choices that a clock took; null when not compared", .nullable = true});
  f.add("layers", layers, {.help = "of layers.csv; null when not compared", .nullable = true});
  f.add("weights", weights, {.help = "of the newest intact checkpoints; null unless both have one", .nullable = true});
  f.add("trouble", trouble, {.help = "what is damaged, and how far it was compared"});
}

Value to_value(const RunDiff& diff) { return write(diff); }

}  // namespace tessera
