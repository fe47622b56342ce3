// The checks that every op makes on its operands before it allocates anything.
#pragma once

#include "core/tensor.h"

namespace tessera {

// Throws DTypeError unless x is f32 or f64. For the ops of kUnroundedOps (core/device/precision.h) alone.
void check_real(const char* operation, const Tensor& x);
// Throws DTypeError unless x is f32, f64, bf16 or, on a GPU, f16. The second names the dtype alone.
void check_floating(const char* operation, const Tensor& x);
void check_dtype(const char* operation, const Tensor& x);

// Throws DeviceError or DTypeError, describing both operands, unless they lie on one device and have one dtype of those.
void check_operands(const char* operation, const char* name_a, const Tensor& a, const char* name_b, const Tensor& b);

// Throws DeviceError or DTypeError unless `companion` (labels, ids, a mask) has this dtype and lies on x's device.
void check_companion(const char* operation, const char* name_x, const Tensor& x, const char* name, const Tensor& companion,
                     DType dtype);

}  // namespace tessera
