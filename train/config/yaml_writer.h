// Configuration trees as YAML.
#pragma once

#include <string>

#include "core/config/value.h"

namespace tessera {

// A document that parse_yaml reads back to an equal value: blocks indented by two, lists of scalars in [ ], texts quoted where
// they would mean something else, reals in the shortest form that keeps their bits. Throws ConfigError on what YAML here cannot
// hold: NaN and infinities, empty keys.
std::string to_yaml(const Value& value);

}  // namespace tessera
