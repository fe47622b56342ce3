// The weight of a dense op as its products read it, in the forward and in the gradient of x: what the op saves.
#pragma once

#include "core/tensor.h"

namespace tessera {

// The weight beside an x of `dtype`. Where no operation is recorded it is the weight itself: the forward, which is alone then,
// makes of it what it needs, and keeps that under a ConstantWeights scope.
Tensor weight_of_products(const Tensor& weight, DType dtype);

namespace cpu {
// Itself: kernels lay an f32 weight out for each product in a way of their own.
inline Tensor product_weight(const Tensor& weight, DType) { return weight; }
}  // namespace cpu
namespace cuda {
// Rounded to `dtype`, or itself where it has it.
Tensor product_weight(const Tensor& weight, DType dtype);
}  // namespace cuda

}  // namespace tessera
