#include "tests/train/schema/key_files.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "core/support/error.h"
#include "tests/train/schema/key_contexts.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/experiment.h"

namespace tessera::testing {
namespace {

bool is_list_of_blocks(const Value& value) {
  return value.is_list() && std::ranges::all_of(value.as_list(), [](const Value& item) { return item.is_map(); });
}

Value yaml(std::string_view text, const std::string& what) { return parse_yaml(text, what); }

// Plausible values of a key, the likeliest first.
std::vector<Value> candidates(const SchemaEntry& entry, std::span<const KeyContext* const> rows) {
  std::vector<Value> values;
  if (!rows.empty() && rows.back()->path == shared_path(entry.path) && !rows.back()->value.empty()) {
    return {yaml(rows.back()->value, "value of " + entry.path)};
  }
  if (!entry.spec.example.empty()) {
    const bool text = entry.type == "text" && !entry.spec.choices.empty();  // a choice may look like another type
    values.push_back(text ? Value(entry.spec.example) : yaml(entry.spec.example, "example of " + entry.path));
  }
  for (const std::string_view choice : entry.spec.choices) values.emplace_back(choice);
  if (entry.type == "true or false") values.insert(values.end(), {Value(true), Value(false)});
  return values;
}

Value with_context(const SchemaEntry& entry, std::span<const KeyContext* const> rows) {
  Value file = yaml(base_experiment(), "base");
  for (const KeyContext* row : rows) {
    if (!row->context.empty()) overlay(file, yaml(row->context, "context of " + entry.path));
  }
  Value parents = file;
  open_place(parents, entry.path);
  return fault_of(parents).empty() ? parents : file;
}

KeyFiles make_files(const SchemaEntry& entry) {
  const std::vector<const KeyContext*> rows = contexts_of(entry.path);
  KeyFiles files{.without = with_context(entry, rows), .with = {}};
  if (const std::string fault = fault_of(files.without); !fault.empty()) {
    throw std::runtime_error(str(entry.path, ": no legal file to set it in: ", fault));
  }
  std::string faults;
  for (const Value& value : candidates(entry, rows)) {
    Value with = files.without;
    if (!rows.empty() && !rows.back()->along.empty()) overlay(with, yaml(rows.back()->along, "beside " + entry.path));
    const Place place = open_place(with, entry.path);
    place.block->set(place.key, value);
    const std::string fault = fault_of(with);
    faults += fault.empty() ? fault : "\n" + fault;
    if (!fault.empty()) continue;
    files.single = resolved(with) == resolved(files.without);
    files.with = std::move(with);
    if (!files.single) return files;
  }
  if (files.with.is_null()) throw std::runtime_error(str(entry.path, ": no legal value known:", faults));
  return files;
}

// The tests make no files of cifar10 and mnist. glyphs has all their keys (ImageConfig). Two items of `augment` belong to
// image-folder alone.
bool is_tried(std::string_view path) {
  constexpr std::string_view kOthers[] = {"data(cifar10)", "data(mnist)", "data(glyphs).augment[].crop",
                                          "data(glyphs).augment[].resized_crop"};
  return std::ranges::none_of(kOthers, [&](std::string_view other) { return path.starts_with(other); });
}

}  // namespace

std::vector<PathStep> steps_of(std::string_view path) {
  std::vector<PathStep> steps;
  while (!path.empty()) {
    if (path.starts_with("[]")) {
      steps.push_back({PathStep::Kind::item});
      path.remove_prefix(2);
    } else if (path.starts_with('(')) {
      const std::size_t end = path.find(')');
      steps.push_back({PathStep::Kind::alternative, std::string(path.substr(1, end - 1))});
      path.remove_prefix(end + 1);
    } else {
      if (path.starts_with('.')) path.remove_prefix(1);
      const std::size_t end = std::min(path.find_first_of(".[("), path.size());
      steps.push_back({PathStep::Kind::key, std::string(path.substr(0, end))});
      path.remove_prefix(end);
    }
  }
  return steps;
}

Place open_place(Value& root, std::string_view schema_path) {
  std::vector<PathStep> steps = steps_of(schema_path);
  Place place{&root, "", steps.back().name};
  steps.pop_back();
  for (const PathStep& step : steps) {
    if (step.kind == PathStep::Kind::item) {
      if (!place.block->is_list()) *place.block = Value::list();
      Value::List& items = place.block->as_list();
      if (items.empty()) items.push_back(Value::map());
      place.block = &items.back();
      place.path += str('[', items.size() - 1, ']');
      continue;
    }
    if (!place.block->is_map()) *place.block = Value::map();
    if (step.kind == PathStep::Kind::alternative) {
      place.block->set("name", step.name);
      continue;
    }
    Value* next = place.block->find(step.name);
    place.block = next ? next : &place.block->set(step.name, Value());
    place.path += (place.path.empty() ? "" : ".") + step.name;
  }
  if (!place.block->is_map()) *place.block = Value::map();
  return place;
}

void overlay(Value& base, const Value& over) {
  if (base.is_map() && over.is_map()) {
    for (const Value::Entry& entry : over.as_map()) {
      if (entry.value.is_null()) {
        base.erase(entry.key);
      } else if (Value* below = base.find(entry.key)) {
        overlay(*below, entry.value);
      } else {
        base.set(entry.key, entry.value);
      }
    }
  } else if (is_list_of_blocks(base) && is_list_of_blocks(over)) {
    for (std::size_t i = 0; i < over.as_list().size(); ++i) {
      if (i == base.as_list().size()) base.as_list().push_back(Value::map());
      overlay(base.as_list()[i], over.as_list()[i]);
    }
  } else {
    base = over;
  }
}

std::string fault_of(const Value& file) {
  try {
    resolved(file);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

Value resolved(const Value& file) { return parse_experiment(parse_yaml(to_yaml(file), "generated.yaml")).resolved; }

const KeyFiles& files_for(const SchemaEntry& entry) {
  static std::map<std::string, KeyFiles> made;
  const auto known = made.find(entry.path);
  return known != made.end() ? known->second : made.emplace(entry.path, make_files(entry)).first->second;
}

const std::vector<SchemaEntry>& experiment_schema() {
  static const std::vector<SchemaEntry> entries = [] {
    std::vector<SchemaEntry> all = schema<ExperimentConfig>();
    std::erase_if(all, [](const SchemaEntry& entry) { return !is_tried(entry.path); });
    return all;
  }();
  return entries;
}

bool is_block(const SchemaEntry& entry) { return entry.type.find("block") != std::string::npos; }

}  // namespace tessera::testing
