// Which layers a rule of an experiment file means. A pattern is a glob over the whole dotted path, or "re:" and an ECMAScript
// regular expression that must match the whole path. Globs: `*` is any text, dots included; `?` one character other than a dot;
// `[23]`, `[a-c]`, `[!0]` one character of (or not of) a class; every other character is itself.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace tessera {

// Throws ConfigError on an unclosed class or a faulty regular expression.
bool path_matches(std::string_view pattern, std::string_view path);

// The paths that match, in their given order. Throws ConfigError naming the nearest paths when there is none.
std::vector<std::string> select(std::string_view pattern, std::span<const std::string> paths);

// The paths that any of several patterns matches, in the paths' order. Each pattern must match at least one path.
std::vector<std::string> select(std::span<const std::string> patterns, std::span<const std::string> paths);

// How a file writes a selector: one pattern, or a list of at least one.
bool is_selector(const Value& value);
std::vector<std::string> selector_patterns(const Value& selector);

}  // namespace tessera
