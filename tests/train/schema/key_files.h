// Experiment files made from the schema: for each of its keys a legal one with the key and one without, so that a new key is
// tested without a new test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/read.h"

namespace tessera::testing {

// The parts of SchemaEntry::path: "stages[].optimizer(sgd).lr" = key stages, item, key optimizer, alternative sgd, key lr.
struct PathStep {
  enum class Kind { key, item, alternative };
  Kind kind = Kind::key;
  std::string name = {};
};
std::vector<PathStep> steps_of(std::string_view path);

// A place in a file: the block that a key is in, made where it is absent (of a list the last item), and its dotted path.
struct Place {
  Value* block = nullptr;
  std::string path;  // "stages[0].optimizer"; "" at the top
  std::string key;
  std::string dotted() const { return path.empty() ? key : path + "." + key; }
};
Place open_place(Value& root, std::string_view schema_path);

struct KeyFiles {
  Value without;  // legal; what the key needs around it is there
  Value with;  // the same with another value at the key; with the only legal one when `single`
  bool single = false;
};
// Throws std::runtime_error, with why not, when it can make no legal file: the key then needs a row in key_contexts.cpp.
const KeyFiles& files_for(const SchemaEntry& entry);

// `over` upon `base`, also inside lists of blocks; null drops a key.
void overlay(Value& base, const Value& over);

// "" or what parse_experiment has against it.
std::string fault_of(const Value& file);
// The file as the program resolves it. Throws ConfigError.
Value resolved(const Value& file);

// Keys that several sets of images share stand once.
const std::vector<SchemaEntry>& experiment_schema();
bool is_block(const SchemaEntry& entry);

}  // namespace tessera::testing
