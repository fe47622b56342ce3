// Checks and views that the dense operations share.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "core/autograd/var.h"

namespace tessera {

struct NamedOperand {
  const char* name;
  const Tensor& value;
};

// All operands are f32, f64 or bf16 of one dtype, on one device. Throws DTypeError or DeviceError naming the first that differs.
void check_operands(const char* operation, std::initializer_list<NamedOperand> operands);
// The same for parameters and statistics beside activations x: they are of parameter_dtype(x.dtype()).
void check_parameters(const char* operation, const NamedOperand& x, std::initializer_list<NamedOperand> parameters);

// x [..., n] as [rows, n], also when n is 0.
Tensor as_rows(const Tensor& x);

// Positions of a window of `kernel` taps that lie `dilation` apart, stepping by `stride` over a padded axis.
// Throws ShapeError when the window does not fit or has a size of more than 31 bits. `axis` is "height" or "width", for the
// message.
std::int64_t window_count(const char* operation, const char* axis, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                          std::int64_t padding, std::int64_t dilation = 1);

// y, an activation whose sizes a file may have chosen. Throws ShapeError when it has more elements than kMostElements
// (core/support/counting.h).
const Shape& checked_size(const char* operation, const Shape& y);

}  // namespace tessera
