#pragma once

#include "core/half.h"

namespace tessera::cpu {

// Two neighbours along the depth of a product.
struct Bf16Pair {
  bfloat16 first, second;
};

}  // namespace tessera::cpu
