// What a key needs around it before it matters, where the schema alone does not say.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace tessera::testing {

struct KeyContext {
  // Which way round one of a key's two files is legal to read, and refused by the check before training.
  enum class Refused { none, without, with };

  std::string_view path;  // of a key or, for all keys in it, a block
  std::string_view context = "";  // YAML laid over both files
  std::string_view value = "";  // YAML; another one than the schema's example
  std::string_view along = "";  // YAML laid over the file that has the key
  Refused refused = Refused::none;
  // Required keys that it stands for, separated by blanks: missing where it is misspelled.
  std::string_view stands_for = "";
};

// YAML of the experiment that every file starts from: one that trains in milliseconds.
std::string_view base_experiment();
std::span<const KeyContext> all_contexts();
// Rows for a schema path, outermost block first. Keys that a stage shares with the top level share their rows.
std::vector<const KeyContext*> contexts_of(std::string_view schema_path);
// "stages[].optimizer.name" -> "optimizer.name"; other paths stay.
std::string_view shared_path(std::string_view schema_path);

}  // namespace tessera::testing
