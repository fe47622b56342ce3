// Weights as products beside half activations read them.
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace tessera::cuda {

// weight rounded to `dtype`, or itself where it has it. Kept under a ConstantWeights scope.
Tensor rounded_weight(const Tensor& weight, DType dtype);

// x [..., in] with zeros behind it up to `channels` of the last axis; x itself where it has them.
Tensor padded_channels(const Tensor& x, std::int64_t channels);
// weight [out, ..., in] rounded to `dtype` with zeros up to [rows, ..., channels]. Kept under a ConstantWeights scope.
Tensor padded_weight(const Tensor& weight, std::int64_t rows, std::int64_t channels, DType dtype);

}  // namespace tessera::cuda
