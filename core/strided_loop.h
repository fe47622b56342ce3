// How several equally shaped strided operands are walked together. Dimensions that lie next to each other in every operand are
// merged first, so that contiguous tensors are one inner row.
#pragma once

#include <array>
#include <cstdint>

#include "core/shape.h"
#include "core/support/host_device.h"
#include "core/tensor.h"

namespace tessera {

template <std::size_t N>
struct StridedLoop {
  int rank = 0;                                                        // after merging; at least 1
  std::array<std::int64_t, Shape::kMaxRank> sizes{};                   // outermost first
  std::array<std::array<std::int64_t, Shape::kMaxRank>, N> strides{};  // in elements, per operand

  TESSERA_HD std::int64_t inner() const { return sizes[static_cast<std::size_t>(rank - 1)]; }
  TESSERA_HD std::int64_t inner_stride(std::size_t operand) const { return strides[operand][static_cast<std::size_t>(rank - 1)]; }
  TESSERA_HD std::int64_t outer() const {
    std::int64_t product = 1;
    for (int i = 0; i + 1 < rank; ++i) product *= sizes[static_cast<std::size_t>(i)];
    return product;
  }

  // Element offsets of the row with this outer index.
  TESSERA_HD std::array<std::int64_t, N> offsets(std::int64_t row) const {
    std::array<std::int64_t, N> at{};
    for (int i = rank - 2; i >= 0; --i) {
      const auto axis = static_cast<std::size_t>(i);
      const std::int64_t index = row % sizes[axis];
      row /= sizes[axis];
      for (std::size_t k = 0; k < N; ++k) at[k] += index * strides[k][axis];
    }
    return at;
  }
};

// `operands` have one shape (expand() them first).
template <std::size_t N>
StridedLoop<N> make_strided_loop(const std::array<const Tensor*, N>& operands) {
  StridedLoop<N> loop;
  const Shape& shape = operands[0]->shape();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    bool merges = loop.rank > 0;
    for (std::size_t k = 0; merges && k < N; ++k) {
      merges = loop.strides[k][static_cast<std::size_t>(loop.rank - 1)] == operands[k]->strides()[axis] * shape[axis];
    }
    if (!merges) ++loop.rank;
    const auto at = static_cast<std::size_t>(loop.rank - 1);
    loop.sizes[at] = merges ? loop.sizes[at] * shape[axis] : shape[axis];
    for (std::size_t k = 0; k < N; ++k) loop.strides[k][at] = operands[k]->strides()[axis];
  }
  if (loop.rank == 0) {
    loop.rank = 1;
    loop.sizes[0] = 1;
    for (std::size_t k = 0; k < N; ++k) loop.strides[k][0] = 1;
  }
  return loop;
}

}  // namespace tessera
