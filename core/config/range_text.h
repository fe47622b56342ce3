// A legal range in words, for messages and `tessera schema`.
#pragma once

#include <string>

#include "core/config/field_spec.h"

namespace tessera {

// "at least 1", "greater than 0", "in [0, 1)", "at most 8"; "" when every number is legal.
std::string range_text(const Range& range);

}  // namespace tessera
