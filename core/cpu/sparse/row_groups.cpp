#include "core/cpu/sparse/row_groups.h"

#include <algorithm>
#include <map>

namespace tessera::cpu::sparse {
namespace {

std::span<const std::int32_t> columns_of(const SparseIndex& index, std::int64_t row) {
  return std::span(index.indices).subspan(index.offsets[row], index.offsets[row + 1] - index.offsets[row]);
}

}  // namespace

std::vector<RowGroup> row_groups(const SparseIndex& index) {
  const auto less = [](std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
    return std::ranges::lexicographical_compare(a, b);
  };
  std::map<std::span<const std::int32_t>, std::size_t, decltype(less)> known(less);
  std::vector<RowGroup> groups;
  for (std::int64_t r = 0; r < index.rows; ++r) {
    const std::span<const std::int32_t> columns = columns_of(index, r);
    if (columns.empty()) continue;
    const auto [found, is_new] = known.emplace(columns, groups.size());
    if (is_new) groups.push_back({{}, columns});
    groups[found->second].rows.push_back(static_cast<std::int32_t>(r));
  }
  return groups;
}

std::span<const std::int32_t> between(std::span<const std::int32_t> ascending, std::int64_t first, std::int64_t last) {
  const auto begin = std::ranges::lower_bound(ascending, first);
  return {begin, std::lower_bound(begin, ascending.end(), last)};
}

}  // namespace tessera::cpu::sparse
