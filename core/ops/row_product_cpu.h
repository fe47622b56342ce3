// The affine map of a single row, which is bound by reading the weight: y = x weight^T + bias.
#pragma once

#include "core/tensor.h"

namespace tessera::cpu {

// x [1, in], weight [out, in], y [1, out], all f32 or all bf16; bias [out], f32, or undefined; contiguous. Sums are in f32. With
// `relu`, y = max(y, 0), NaN kept. The outputs are shared out among at most `threads` threads; each is summed in the same order
// whatever their number.
void row_product(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu, int threads);

}  // namespace tessera::cpu
