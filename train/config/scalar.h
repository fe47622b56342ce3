// What an unquoted YAML scalar means.
#pragma once

#include <string>
#include <string_view>

#include "core/config/value.h"

namespace tessera {

// Boolean, null, number or text by the rules of yaml.h. Throws ConfigError, without a position, on what readers take in several
// ways and on numbers that do not fit.
Value resolve_plain_scalar(std::string_view text);

// `text` with each ${VAR} replaced from the environment. Throws ConfigError naming an unset variable or a malformed reference.
std::string expand_environment(std::string_view text);

}  // namespace tessera
