// Faulty experiment files made from the schema, each with what the program has to say of it.
#pragma once

#include <string>
#include <vector>

#include "core/config/read.h"

namespace tessera::testing {

struct FaultyFile {
  std::string what;  // "optimizer(sgd).lr: misspelled"
  std::string text;
  // One per fault: "5:3: optimizer.lrr: unknown key; did you mean 'lr'?". Of a key that other code than the schema judges only
  // what every message of it begins with.
  std::vector<std::string> expected;
  bool exact = true;
};

FaultyFile misspelled(const SchemaEntry& entry);
std::vector<FaultyFile> mistyped(const SchemaEntry& entry);
// Empty for a key that takes any value of its type.
std::vector<FaultyFile> out_of_range(const SchemaEntry& entry);
// A fault in every block of the schema, each form of a block in a stage of its own.
FaultyFile everything_wrong();

}  // namespace tessera::testing
