// Strict reading of a Value into blocks: every unknown, missing, mistyped and out-of-range key is collected, none is skipped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"

namespace tessera {

// One finding: "x.yaml:14:3: stages[1].admm.rnaks: unknown key; did you mean 'ranks'?"
struct ConfigProblem {
  Mark mark;
  std::string path;  // dotted, with [i] for list items
  std::string message;
};
std::string to_string(const ConfigProblem& problem);
// ConfigError with one line per problem.
[[noreturn]] void throw_config_error(const std::vector<ConfigProblem>& problems);

// Reads one block; appends what is wrong to `problems`, with `path` in front of each key's path.
template <Block T>
void read(const Value& value, T& block, std::string_view path, std::vector<ConfigProblem>& problems);

// Reads one block and throws ConfigError with everything that is wrong.
template <Block T>
T read(const Value& value, std::string_view path = "");

// The block as a map that read() accepts and that gives an equal block.
template <Block T>
Value write(const T& block);

// "optimizer" and "lr" -> "optimizer.lr". Without a key it is the path of the block: a rule of the block has no key.
std::string join(std::string_view path, std::string_view key);

// One key of a schema, for `tessera schema` and the generated tests.
struct SchemaEntry {
  std::string path;  // "stages[].factorise.ranks.params", "optimizer(adamw).beta1"
  std::string type;  // "number", "integer", "text", "duration", "block", "list of blocks", ...
  // JSON, texts without quotes, '' for an empty one; "none" for an absent optional, "" for a required key.
  std::string default_value;
  FieldSpec spec;
};
template <Block T>
std::vector<SchemaEntry> schema();

namespace detail {
class ReadFields;
using Visit = void (*)(void* block, Fields& fields);
void read_block(const Value& value, void* block, Visit visit, std::string_view path, std::vector<ConfigProblem>& problems);
Value write_block(void* block, Visit visit);
std::vector<SchemaEntry> schema_of(void* block, Visit visit);
template <Block T>
void visit(void* block, Fields& fields) {
  static_cast<T*>(block)->fields(fields);
}
}  // namespace detail

template <Block T>
void read(const Value& value, T& block, std::string_view path, std::vector<ConfigProblem>& problems) {
  detail::read_block(value, &block, &detail::visit<T>, path, problems);
}

template <Block T>
T read(const Value& value, std::string_view path) {
  T block{};
  std::vector<ConfigProblem> problems;
  read(value, block, path, problems);
  if (!problems.empty()) throw_config_error(problems);
  return block;
}

template <Block T>
Value write(const T& block) {
  T copy = block;
  return detail::write_block(&copy, &detail::visit<T>);
}

template <Block T>
std::vector<SchemaEntry> schema() {
  T block{};
  return detail::schema_of(&block, &detail::visit<T>);
}

}  // namespace tessera
