// Loops over the columns of a row in vectors. Included like kernels.h.
#pragma once

#include <cstdint>

namespace tessera::cpu::attention {
namespace {

// Calls body.operator()<V>(first column) for parts of V vectors of `columns`, a multiple of W.
template <int W, class Body>
[[gnu::always_inline]] inline void for_each_columns(std::int64_t columns, const Body& body) {
  std::int64_t c = 0;
  for (; c + 4 * W <= columns; c += 4 * W) body.template operator()<4>(c);
  switch ((columns - c) / W) {
    case 3: return body.template operator()<3>(c);
    case 2: return body.template operator()<2>(c);
    case 1: return body.template operator()<1>(c);
    default: return;
  }
}

}  // namespace
}  // namespace tessera::cpu::attention
