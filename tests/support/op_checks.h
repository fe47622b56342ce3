// What every check of the op table needs, on any device.
#pragma once

#include <span>
#include <vector>

#include "tests/support/op_cases.h"

namespace tessera::testing {

inline constexpr double kBf16Rounding = 0x1p-8;  // half a unit in the last of 8 binary digits, relative
inline constexpr double kF16Rounding = 0x1p-11;  // of 11

// Which inputs get gradients.
std::vector<bool> differentiable(const OpCase& row);

Tensor forward(const OpCase& row, std::span<const Tensor> inputs);

// Equal shapes and bytes, whatever device each lies on; undefined tensors are equal to undefined ones.
bool same_bytes(const Tensor& a, const Tensor& b);

// The numbers that inputs of a half type hold, for the path in double.
std::vector<Tensor> widened(std::span<const Tensor> inputs);

// "matmul_wide" of "matmul/wide": what GoogleTest takes for a name.
std::string test_name(const OpCase& row);

}  // namespace tessera::testing
