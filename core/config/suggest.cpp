#include "core/config/suggest.h"

#include <algorithm>
#include <utility>

namespace tessera {

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table: a swap looks two rows back.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string_view> known, std::size_t most) {
  const int limit = std::max(1, static_cast<int>(name.size()) / 3);
  std::vector<std::pair<int, std::string_view>> near;
  for (const std::string_view other : known) {
    const int distance = edit_distance(name, other);
    if (distance <= limit || (!name.empty() && other.starts_with(name))) near.emplace_back(distance, other);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most, near.size()); ++i) names.emplace_back(near[i].second);
  return names;
}

}  // namespace tessera
