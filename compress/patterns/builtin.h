// The sparse patterns there are.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compress/patterns/pattern.h"

namespace tessera {

std::span<const Pattern* const> builtin_patterns();
std::vector<std::string_view> pattern_names();
const Pattern* find_pattern(std::string_view name);  // null where there is none of that name

}  // namespace tessera
