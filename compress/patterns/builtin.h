// The sparse patterns there are.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "compress/patterns/config.h"
#include "compress/patterns/pattern.h"

namespace tessera {

std::vector<std::string_view> pattern_names();
// Throws ConfigError where there is none of that name, or its parameters are not valid.
std::unique_ptr<const Pattern> make_pattern(const PatternConfig& config);

}  // namespace tessera
