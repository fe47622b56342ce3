// "did you mean": the nearest known names to a misspelled one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
int edit_distance(std::string_view a, std::string_view b);

// Names at distance <= max(1, length / 3) or with `name` as a prefix, nearest first, at most `most`.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string_view> known, std::size_t most = 3);

}  // namespace tessera
