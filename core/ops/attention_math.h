// Which keys a query sees: the same on both devices.
#pragma once

#include <cstdint>

#include "core/support/host_device.h"
#include "core/support/rounding.h"

namespace tessera {

struct AttentionForm {
  std::int64_t batch, queries, keys, heads, kv_heads, width;
  bool causal;
  std::int64_t window;  // 0: any distance
  double scale;
  std::int64_t block = 1;  // the window has whole blocks of this many positions

  TESSERA_HD std::int64_t group() const { return heads / kv_heads; }  // query heads that share one of keys
  TESSERA_HD std::int64_t position(std::int64_t query) const { return query + keys - queries; }
  // The keys that a query may see, but for a mask of keys: from first_key() to the one before end_key(); none where they cross.
  TESSERA_HD std::int64_t first_key(std::int64_t query) const {
    const std::int64_t at = position(query), first = window == 0 ? 0 : at - at % block - window + 1;
    return first < 0 ? 0 : first - first % block;
  }
  TESSERA_HD std::int64_t end_key(std::int64_t query) const {
    const std::int64_t at = position(query), behind = at - at % block + block + window - 1 + block - 1;
    const std::int64_t end = causal ? at + 1 : window == 0 ? keys : behind - behind % block;
    return end > keys ? keys : end < 0 ? 0 : end;
  }
  // Only queries from first_query() to the one before end_query() may see the key; some of these may not either.
  TESSERA_HD std::int64_t first_query(std::int64_t key) const {
    if (window == 0 && !causal) return 0;
    const std::int64_t first = (causal ? key : key - window - 2 * block) - position(0);
    return first < 0 ? 0 : first;
  }
  TESSERA_HD std::int64_t end_query(std::int64_t key) const {
    const std::int64_t end = window == 0 ? queries : key + window + 2 * block - position(0);
    return end > queries ? queries : end;
  }
  // Where dropout draws for a probability: word key % 4 of this block. Rows begin with a block of their own.
  TESSERA_HD std::uint64_t random_block(std::int64_t row, std::int64_t key) const {
    return static_cast<std::uint64_t>(row * ceil_div(keys, 4) + key / 4);
  }
};

}  // namespace tessera
