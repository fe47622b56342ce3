// What a run computes in. The one place that says which number formats a device's kernels take.
#pragma once

#include <span>
#include <string_view>

#include "core/device.h"
#include "core/dtype.h"

namespace tessera {

// "f32", "tf32" (f32 tensors, products with 10 bits of mantissa), "bf16", "f16".
std::span<const std::string_view> precision_names();

// The dtype of activations and of the products' operands. Throws ConfigError when the device has no kernels for the precision,
// naming those it has ("bf16 is not supported on cpu yet; supported: f32"), or when it is not a name.
DType compute_dtype(std::string_view precision, const Device& device);

}  // namespace tessera
