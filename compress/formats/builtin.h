// Every compressed form that `format:` can name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compress/formats/format.h"

namespace tessera {

std::span<const Format* const> builtin_formats();
const Format& format_named(std::string_view name);  // throws ConfigError listing the known ones

std::vector<std::string_view> format_names();
// The ranks of all forms, each name once.
std::vector<RankName> all_rank_names();

}  // namespace tessera
