// Attention by its definition, one sum at a time, for tests of any rule of which keys are seen.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/tensor.h"

namespace tessera::testing {

// Which keys a head's query at `position` sees. The last query is at the last key's position.
using Sees = std::function<bool(std::int64_t head, std::int64_t position, std::int64_t key)>;

// in: q [batch, queries, heads, width], k and v [batch, keys, kv_heads, width], contiguous in f64, and, where there is one, a
// mask [batch, keys], 0 where no query sees the key. Returns y like q: sums of v by the softmax over the keys that are seen, 0
// where none is.
Tensor attention_reference(std::span<const Tensor> in, const Sees& sees);

}  // namespace tessera::testing
