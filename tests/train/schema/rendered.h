// Experiment files written out with the place of everything in them, by other code than the product's reader and writer.
#pragma once

#include <map>
#include <string>

#include "core/config/value.h"

namespace tessera::testing {

struct Rendered {
  std::string text;
  std::map<std::string, std::string> keys;  // dotted path -> "line:column" of the key
  std::map<std::string, std::string> values;  // and of the value; blocks and lists begin at their first key or item
};

// One key a line, indented by two; texts of letters alone bare, others in quotes; lists of anything but blocks in [ ].
Rendered render(const Value& root);

}  // namespace tessera::testing
