// Samples that go through a network together.
#pragma once

#include "core/tensor.h"

namespace tessera {

struct Batch {
  Tensor x;  // f32 [b, h, w, c], normalised
  Tensor y;  // i64 [b]
};

}  // namespace tessera
