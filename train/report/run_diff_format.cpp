#include <algorithm>
#include <cmath>
#include <utility>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/run_diff.h"

namespace tessera {
namespace {

constexpr std::size_t kListed = 40;  // of a section, for people
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

// What is measured has a distance; of settings it means nothing.
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

Value to_value(const std::vector<KeyChange>& changes) {
  Value list = Value::list();
  for (const KeyChange& change : changes) {
    Value& row = list.as_list().emplace_back(Value::map());
    row.set("key", change.key);
    row.set("a", change.before);
    row.set("b", change.after);
  }
  return list;
}

Value to_value(const std::optional<std::vector<KeyChange>>& changes) { return changes ? to_value(*changes) : Value(); }

Value to_value(const DiffSide& side) {
  Value value = Value::map();
  value.set("path", side.path);
  value.set("run", side.is_run);
  value.set("stage", side.step < 0 ? Value() : Value(side.stage));
  value.set("step", side.step < 0 ? Value() : Value(side.step));
  return value;
}

Value metrics_value(const RunDiff& diff) {
  Value value = Value::map();
  value.set("stages", to_value(diff.metrics));
  Value& first = value.set("first", Value());
  if (!diff.first_metric) return value;
  first = Value::map();
  first.set("line", diff.first_metric->line);
  first.set("stage", diff.first_metric->stage);
  first.set("step", diff.first_metric->step);
  first.set("values", to_value(diff.first_metric->values));
  return value;
}

Value weights_value(const RunDiff& diff) {
  if (!diff.weights) return {};
  Value value = Value::map();
  value.set("tensors", diff.weights->tensors);
  Value& differing = value.set("differing", Value::list());
  for (const TensorDifference& tensor : diff.weights->differing) {
    Value& row = differing.as_list().emplace_back(Value::map());
    row.set("name", tensor.name);
    row.set("what", tensor.what);
    row.set("max_abs", tensor.what.empty() ? Value(tensor.max_abs) : Value());
  }
  return value;
}

}  // namespace

std::string to_text(const RunDiff& diff) {
  std::string text = side('a', diff.a) + side('b', diff.b) + '\n' + section("keys", diff.keys);
  if (!diff.both_runs()) return text + "only keys are compared: an experiment file has nothing else\n";
  text += section("environment", diff.environment) + section("data", diff.data) + section("metrics", diff.metrics, true) +
          first_metric(diff) + section("decisions", diff.decisions) + section("layers", diff.layers, true) + weights(diff);
  for (const std::string& trouble : diff.trouble) text += "trouble: " + trouble + '\n';
  return text;
}

Value to_value(const RunDiff& diff) {
  const auto of_runs = [&](Value value) { return diff.both_runs() ? std::move(value) : Value(); };
  Value value = Value::map();
  value.set("a", to_value(diff.a));
  value.set("b", to_value(diff.b));
  value.set("differ", diff.differ());
  value.set("keys", to_value(diff.keys));
  value.set("environment", to_value(diff.environment));
  value.set("data", to_value(diff.data));
  value.set("metrics", of_runs(metrics_value(diff)));
  value.set("decisions", to_value(diff.decisions));
  value.set("layers", to_value(diff.layers));
  value.set("weights", of_runs(weights_value(diff)));
  Value& trouble = value.set("trouble", Value::list());
  for (const std::string& what : diff.trouble) trouble.as_list().emplace_back(what);
  return value;
}

}  // namespace tessera
