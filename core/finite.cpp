#include "core/finite.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/device/dispatch.h"

namespace tessera {
namespace {

// Widens half types to f32, which represents all of their values exactly.
Tensor widened(const Tensor& tensor) {
  return (tensor.dtype() == DType::f64 ? tensor : tensor.to(DType::f32)).contiguous();
}

bool may_be_bad(const Tensor& tensor) { return tensor.defined() && is_floating(tensor.dtype()) && tensor.numel() > 0; }

Shape unravel(std::int64_t offset, const Shape& shape) {
  Shape index = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index.set(axis, offset % shape.dim(axis));
    offset /= shape.dim(axis);
  }
  return index;
}

}  // namespace

namespace cpu {

std::int64_t first_bad_offset(const Tensor& tensor) {
  const Tensor x = widened(tensor);
  return dispatch_real(x.dtype(), "first_bad_element", [&]<class T>() {
    const T* const begin = x.data<T>();
    return std::find_if(begin, begin + x.numel(), [](T value) { return !std::isfinite(value); }) - begin;
  });
}

double largest_magnitude_of(const Tensor& tensor) {
  const Tensor x = widened(tensor);
  return dispatch_real(x.dtype(), "largest_magnitude", [&]<class T>() {
    double largest = 0;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const double magnitude = std::fabs(static_cast<double>(x.data<T>()[i]));
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    return largest;
  });
}

}  // namespace cpu

bool all_finite(const Tensor& tensor) {
  return !may_be_bad(tensor) || TESSERA_BACKEND(tensor.device(), first_bad_offset, tensor) == tensor.numel();
}

std::string_view BadElement::kind() const { return std::isnan(value) ? "NaN" : "Inf"; }

std::optional<BadElement> first_bad_element(const Tensor& tensor) {
  if (!may_be_bad(tensor)) return {};
  const std::int64_t offset = TESSERA_BACKEND(tensor.device(), first_bad_offset, tensor);
  if (offset == tensor.numel()) return {};
  const Tensor flat = tensor.contiguous().reshape({tensor.numel()});
  return BadElement{unravel(offset, tensor.shape()), flat.slice(0, offset, offset + 1).item()};
}

std::string describe(const Tensor& tensor, const BadElement& bad) {
  // The sign of a NaN means nothing and differs between processors.
  const std::string value = std::isnan(bad.value) ? std::string("nan") : str(bad.value);
  return str(tensor.dtype(), ' ', tensor.shape(), " at ", bad.index, " is ", value);
}

double largest_magnitude(const Tensor& tensor) {
  return may_be_bad(tensor) ? TESSERA_BACKEND(tensor.device(), largest_magnitude_of, tensor) : 0.0;
}

}  // namespace tessera
