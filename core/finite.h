// Finding NaN and Inf in tensors. Waits for the device, which looks at the elements and sends back the answer alone: never inside
// a step, unless numbers are being checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace tessera {

// Integer tensors are finite, and so are undefined ones.
bool all_finite(const Tensor& tensor);

// The first NaN or Inf in row-major order.
struct BadElement {
  Shape index;
  double value = 0;
  std::string_view kind() const;  // "NaN" or "Inf"
};
std::optional<BadElement> first_bad_element(const Tensor& tensor);
// "f32 [2, 3] at [0, 2] is nan"
std::string describe(const Tensor& tensor, const BadElement& bad);

// The largest magnitude among the finite elements; 0 when there are none.
double largest_magnitude(const Tensor& tensor);

// Tensors are floating and have at least one element. first_bad_offset counts in row-major order; numel() where all are finite.
namespace cpu {
std::int64_t first_bad_offset(const Tensor& tensor);
double largest_magnitude_of(const Tensor& tensor);
}  // namespace cpu
namespace cuda {
std::int64_t first_bad_offset(const Tensor& tensor);
double largest_magnitude_of(const Tensor& tensor);
}  // namespace cuda

}  // namespace tessera
