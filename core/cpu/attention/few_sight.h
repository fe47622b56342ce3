// Which of a block of keys each of a few queries sees. Included like kernels.h.
#pragma once

#include <cstring>

#include "core/cpu/attention/arrays.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/vectors.h"

namespace tessera::cpu::attention {
namespace {

// Keys of a block, kBlockOfKeys at most, whatever the head.
template <int W>
struct Block {
  std::int64_t count;
  std::int64_t rows[kBlockOfKeys];  // of their k, from the block's first; behind the last key its row is repeated
  IntVec<W> seen[kFewQueries][kBlockOfKeys / W];  // by each query
  bool some[kFewQueries];  // whether there are any
};

template <int W, class T>
void sight_of(const FewQueries<T>& o, std::int64_t first, std::int64_t end, Block<W>& block) {
  constexpr int kVectors = kBlockOfKeys / W;
  block.count = lesser(kBlockOfKeys, end - first);
  alignas(64) std::int32_t keys[kBlockOfKeys], shown[kBlockOfKeys];
  for (int j = 0; j < kBlockOfKeys; ++j) {
    block.rows[j] = lesser(j, block.count - 1) * o.k.position;
    keys[j] = static_cast<std::int32_t>(first + j);
    shown[j] = j < block.count && (o.mask == nullptr || o.mask[first + j] != 0) ? -1 : 0;
  }
  for (std::int64_t i = 0; i < o.form.queries; ++i) {
    const std::int64_t from = o.form.first_key(i), to = o.form.end_key(i);
    IntVec<W> any{};
    for (int b = 0; b < kVectors; ++b) {
      IntVec<W> at, here;
      std::memcpy(&at, keys + b * W, sizeof at);
      std::memcpy(&here, shown + b * W, sizeof here);
      block.seen[i][b] = (at >= static_cast<std::int32_t>(from)) & (at < static_cast<std::int32_t>(to)) & here;
      any |= block.seen[i][b];
    }
    block.some[i] = false;
    for (int lane = 0; lane < W; ++lane) block.some[i] |= any[lane] != 0;
  }
}

}  // namespace
}  // namespace tessera::cpu::attention
