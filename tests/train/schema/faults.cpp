#include "tests/train/schema/faults.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/config/range_text.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/train/schema/key_contexts.h"
#include "tests/train/schema/key_files.h"
#include "tests/train/schema/rendered.h"

namespace tessera::testing {
namespace {

constexpr std::int64_t kNotText = 918273;
constexpr const char* kNotNumber = "wrong";

struct Fault {
  Value value;
  std::string message;
};

// Keys that other code than the schema checks, and texts with special rules: each with a value that breaks its rule.
struct OwnRule {
  std::string_view path;
  Value value;
  std::string message;  // beginning of the message
  std::string inner = "";
};
const std::vector<OwnRule>& own_rules() {
  static const std::vector<OwnRule> rules{
      {"name", "a b", "'a b' must be letters, digits, '.', '_' or '-'"},
      {"device", "gpu", "unknown device 'gpu'; use cpu, cuda or cuda:N"},
      {"data(glyphs).val", 1, "needs a fraction, 0 <= fraction < 1"},
      {"data(glyphs).mean", "measured", "needs auto or a list of one number per channel"},
      {"data(glyphs).std", Value::list({"x"}), "needs auto or a list of one number per channel"},
      {"data(image-folder).val", 1, "needs a fraction, 0 <= fraction < 1, or the name of a folder"},
      {"data(image-folder).mean", "measured", "needs auto or a list of one number per channel"},
      {"data(image-folder).std", Value::list({"x"}), "needs auto or a list of one number per channel"},
      {"data(image-folder).train", "/train", "needs the name of a folder below root"},
      {"data(image-folder).test", "", "needs the name of a folder below root"},
      {"data(image-folder).left_out[].file", "/cat/1.jpg", "needs an image below root, such as train/cat/1.jpg"},
      {"data(image-folder).left_out[].ends", "5", "needs 32 hexadecimal digits"},
      {"data(text).tokenizer", "byte", "unknown tokenizer 'byte'; did you mean 'bytes'?"},
      {"data(text).files", Value::list(), "needs the names of text files"},
      {"model(layers).layers", Value::list({"rellu"}), "unknown layer 'rellu'; did you mean 'relu'?", "[0]"},
      {"schedule(step).milestones", Value::list({"10x"}), "needs durations such as 100e, 5000s or 50%"},
      {"stages[].name", "a b", "'a b' must be letters, digits, '.', '_' or '-'"},
      {"stages[].factorise.layers", Value::list(), "needs a selector or a list of selectors"},
      {"stages[].factorise.ranks[].layers", Value::list(), "needs a selector or a list of selectors"},
      {"stages[].factorise.from", "nowhere", "'nowhere' is no earlier stage with an admm block of low rank"},
      {"stages[].distill.from", "nowhere", "'nowhere' is no earlier stage"},
      {"stages[].prune.layers", Value::list(), "needs a selector or a list of selectors"},
      {"stages[].prune.sparsity.targets[].layers", Value::list(), "needs a selector or a list of selectors"},
      {"stages[].rigl.layers", Value::list(), "needs a selector or a list of selectors"},
      {"stages[].sparsify.layers", Value::list(), "needs a selector or a list of selectors"},
      {"stages[].prune.n_m", "4:2", "is 4:2; needs N:M with 0 < N < M"},
      {"stages[].admm.layers", Value::list(), "needs a selector or a list of selectors"},
      {"stages[].admm.ranks[].layers", Value::list(), "needs a selector or a list of selectors"},
  };
  return rules;
}

std::string place_of(const std::map<std::string, std::string>& places, const std::string& path) {
  const auto found = places.find(path);
  return found == places.end() ? "nowhere" : found->second;
}

FaultyFile with_value(const SchemaEntry& entry, const std::string& what, const Value& value, const std::string& message,
                      const std::string& inner = "") {
  Value file = files_for(entry).with;
  const Place place = open_place(file, entry.path);
  place.block->set(place.key, value);
  const Rendered rendered = render(file);
  const std::string path = place.dotted() + inner;
  return {entry.path + ": " + what, rendered.text, {str(place_of(rendered.values, path), ": ", path, ": ", message)}};
}

bool holds(const SchemaEntry& entry, std::string_view word) { return entry.type.find(word) != std::string::npos; }
bool is_list(const SchemaEntry& entry) { return entry.type.starts_with("list of") && !is_block(entry); }

Fault wrong_scalar(const SchemaEntry& entry) {
  if (holds(entry, "integer")) return {kNotNumber, "expected an integer, found text 'wrong'"};
  if (holds(entry, "number")) return {kNotNumber, "expected a number, found text 'wrong'"};
  if (holds(entry, "true or false")) return {kNotNumber, "expected true or false, found text 'wrong'"};
  if (holds(entry, "duration")) return {kNotText, "expected a length of training, found 918273; write 10e, 5000s or 20%"};
  return {kNotText, "expected text, found 918273; write it in quotes"};
}

void add_beyond(const SchemaEntry& entry, double limit, int away, bool open, std::vector<Fault>& faults) {
  if (!std::isfinite(limit)) return;
  const double number = open ? limit : limit + away;
  const bool whole = holds(entry, "integer");
  const Value value = whole ? Value(static_cast<std::int64_t>(number)) : Value(number);
  if (whole && value.as_double() == limit && !open) return;  // a double cannot tell them apart near 2^53
  faults.push_back({value, str("is ", to_json(value), "; must be ", range_text(entry.spec.range))});
}

std::vector<Fault> range_faults(const SchemaEntry& entry) {
  const Range& range = entry.spec.range;
  std::vector<Fault> faults;
  if (entry.type == "duration") {
    faults.push_back({"200%", "'200%' is longer than the stage; at most 100%"});
    if (range.open_min) faults.push_back({"0s", str("is 0s; must be ", range_text(range))});
  } else if (holds(entry, "integer") || holds(entry, "number")) {
    add_beyond(entry, range.min, -1, range.open_min, faults);
    add_beyond(entry, range.max, +1, range.open_max, faults);
  } else if (!entry.spec.choices.empty()) {
    std::string choices;
    for (const std::string_view choice : entry.spec.choices) choices += str(' ', choice);
    const std::string_view right = entry.spec.choices.back();
    const std::string wrong = str(right, right.back());
    faults.push_back({wrong, str('\'', wrong, "' is not a choice; did you mean '", right, "'?; choices:", choices)});
  }
  return faults;
}

std::string_view stands_for(const SchemaEntry& entry) {
  const std::vector<const KeyContext*> rows = contexts_of(entry.path);
  return rows.empty() || rows.back()->path != shared_path(entry.path) ? "" : rows.back()->stands_for;
}

// "stages[].optimizer(sgd).lr" -> "stages[].optimizer(sgd)".
std::string block_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// The keys that everything_wrong spoils: the first of each block that is no block and selects no alternative.
std::vector<SchemaEntry> first_keys() {
  const std::vector<SchemaEntry>& entries = experiment_schema();
  const auto has_alternatives = [&](const std::string& block) {
    return std::ranges::any_of(entries, [&](const SchemaEntry& entry) { return entry.path.starts_with(block + "("); });
  };
  std::vector<SchemaEntry> keys;
  std::set<std::string> blocks;
  std::set<std::string> top_level;  // e.g. "optimizer" of "optimizer(sgd)": a file holds only one of its forms
  for (const SchemaEntry& entry : entries) {
    const std::string block = block_of(entry.path);
    if (is_block(entry) || entry.type == "any" || has_alternatives(block) || !stands_for(entry).empty()) continue;
    const bool in_stage = block.starts_with("stages[].");
    if (!in_stage && !top_level.insert(block.substr(0, block.find('('))).second) continue;
    if (blocks.insert(block).second) keys.push_back(entry);
  }
  return keys;
}

}  // namespace

FaultyFile misspelled(const SchemaEntry& entry) {
  Value file = files_for(entry).with;
  const Place place = open_place(file, entry.path);
  const std::string wrong = place.key + place.key.back();
  for (Value::Entry& each : place.block->as_map()) {
    if (each.key == place.key) each.key = wrong;
  }
  const std::string path = Place{nullptr, place.path, wrong}.dotted();
  const Rendered rendered = render(file);
  FaultyFile faulty{entry.path + ": misspelled",
                    rendered.text,
                    {str(place_of(rendered.keys, path), ": ", path, ": unknown key; did you mean '", place.key, "'?")}};
  const std::string first = Place{nullptr, place.path, place.block->as_map().front().key}.dotted();  // the block's place
  for (const std::string& needed : split(std::string(stands_for(entry)), ' ')) {
    if (needed.empty()) continue;
    faulty.expected.push_back(
        str(place_of(rendered.keys, first), ": ", Place{nullptr, place.path, needed}.dotted(), ": required key is missing"));
  }
  return faulty;
}

std::vector<FaultyFile> mistyped(const SchemaEntry& entry) {
  if (is_block(entry)) {
    const char* expected = entry.type == "list of blocks" ? "expected a list of blocks" : "expected a block";
    return {with_value(entry, "no block", kNotText, str(expected, ", found 918273"))};
  }
  if (entry.type == "any") {
    FaultyFile file = with_value(entry, "true", true, "");
    file.exact = false;
    return {std::move(file)};
  }
  const Fault wrong = wrong_scalar(entry);
  if (is_list(entry)) {
    return {with_value(entry, "no list", kNotText, "expected a list, found 918273; write it in [ ]"),
            with_value(entry, "mistyped item", Value::list({wrong.value}), wrong.message, "[0]")};
  }
  std::vector<FaultyFile> files{with_value(entry, "mistyped", wrong.value, wrong.message)};
  if (entry.type == "integer" || entry.type == "number") {
    const std::string message = str("expected ", entry.type == "integer" ? "an " : "a ", entry.type, ", found text '12'");
    files.push_back(with_value(entry, "number in quotes", "12", message + "; a number takes no quotes"));
  }
  return files;
}

std::vector<FaultyFile> out_of_range(const SchemaEntry& entry) {
  std::vector<FaultyFile> files;
  for (const OwnRule& rule : own_rules()) {
    const bool shared = entry.path == "stages[]." + std::string(rule.path);
    if (entry.path != rule.path && !shared) continue;
    files.push_back(with_value(entry, "against its rule", rule.value, rule.message, rule.inner));
    files.back().exact = false;
  }
  if (is_block(entry) || entry.type == "any") return files;
  for (const Fault& fault : range_faults(entry)) {
    files.push_back(is_list(entry) ? with_value(entry, "item out of range", Value::list({fault.value}), fault.message, "[0]")
                                   : with_value(entry, "out of range", fault.value, fault.message));
  }
  return files;
}

FaultyFile everything_wrong() {
  Value file;
  std::vector<std::pair<std::string, std::string>> faults;  // path, message
  Value stages = Value::list();
  for (const SchemaEntry& entry : first_keys()) {
    const Fault wrong = wrong_scalar(entry);
    const bool in_stage = entry.path.starts_with("stages[]");
    Value own = files_for(entry).without;
    if (file.is_null()) file = own;
    const Place place = open_place(in_stage ? own : file, entry.path);
    place.block->set(place.key, is_list(entry) ? Value::list({wrong.value}) : wrong.value);
    std::string path = place.dotted();
    if (in_stage) {
      Value stage = own.at("stages").as_list().back();
      if (entry.path != "stages[].name") stage.set("name", str("stage-", stages.as_list().size()));
      path.replace(0, std::string_view("stages[0]").size(), str("stages[", stages.as_list().size(), ']'));
      stages.as_list().push_back(std::move(stage));
    }
    faults.emplace_back(path + (is_list(entry) ? "[0]" : ""), wrong.message);
  }
  file.set("stages", std::move(stages));
  const Rendered rendered = render(file);
  FaultyFile all{"a fault in every block", rendered.text, {}};
  for (const auto& [path, message] : faults)
    all.expected.push_back(str(place_of(rendered.values, path), ": ", path, ": ", message));
  return all;
}

}  // namespace tessera::testing
