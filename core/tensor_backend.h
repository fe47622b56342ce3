// What Tensor asks of a device's kernels.
#pragma once

#include "core/tensor.h"

namespace tessera {

// strided_copy: equal shapes and devices, any strides, converts the dtype; float to integer truncates to zero. fill: the value
// rounded to the tensor's dtype, in every element.
namespace cpu {
void strided_copy(const Tensor& source, const Tensor& target);
void fill(const Tensor& target, double value);
}  // namespace cpu
namespace cuda {
void strided_copy(const Tensor& source, const Tensor& target);
void fill(const Tensor& target, double value);
// Tensors are contiguous, of one shape and dtype, on different devices, one of them a GPU. Waits until the copy is done, in both
// directions.
void copy_across(const Tensor& source, const Tensor& target);
}  // namespace cuda

}  // namespace tessera
