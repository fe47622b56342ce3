// cuBLASLt called directly on the same tensors, with every algorithm that its heuristic offers: the rival of our matrix products.
#pragma once

#include "bench/device_rotation.h"
#include "bench/rivals/onednn_rival.h"

namespace tessera::bench {

// `sets`: the same product on other tensors, of one dtype, f32, bf16 or f16. `tf32`: f32 operands may be rounded.
std::vector<RotatedSide> cublas_rivals(const std::vector<Product>& sets, bool tf32);

}  // namespace tessera::bench
