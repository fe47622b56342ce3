#include "core/finite.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

// Half types widen to f32, in which every value of theirs is itself.
Tensor on_host(const Tensor& tensor) {
  const Tensor host = tensor.to(Device::cpu());
  return (host.dtype() == DType::f64 ? host : host.to(DType::f32)).contiguous();
}

std::int64_t first_bad_offset(const Tensor& host) {
  return dispatch_real(host.dtype(), "first_bad_element", [&]<class T>() {
    const T* const begin = host.data<T>();
    return std::find_if(begin, begin + host.numel(), [](T value) { return !std::isfinite(value); }) - begin;
  });
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

bool all_finite(const Tensor& tensor) {
  if (!may_be_bad(tensor)) return true;
  const Tensor host = on_host(tensor);
  return first_bad_offset(host) == host.numel();
}

std::string_view BadElement::kind() const { return std::isnan(value) ? "NaN" : "Inf"; }

std::optional<BadElement> first_bad_element(const Tensor& tensor) {
  if (!may_be_bad(tensor)) return {};
  const Tensor host = on_host(tensor);
  const std::int64_t offset = first_bad_offset(host);
  if (offset == host.numel()) return {};
  const double value =
      dispatch_real(host.dtype(), "first_bad_element", [&]<class T>() { return static_cast<double>(host.data<T>()[offset]); });
  return BadElement{unravel(offset, tensor.shape()), value};
}

std::string describe(const Tensor& tensor, const BadElement& bad) {
  // The sign of a NaN means nothing, and which one hardware makes differs.
  const std::string value = std::isnan(bad.value) ? std::string("nan") : str(bad.value);
  return str(tensor.dtype(), ' ', tensor.shape(), " at ", bad.index, " is ", value);
}

double largest_magnitude(const Tensor& tensor) {
  if (!may_be_bad(tensor)) return 0;
  const Tensor host = on_host(tensor);
  return dispatch_real(host.dtype(), "largest_magnitude", [&]<class T>() {
    double largest = 0;
    for (std::int64_t i = 0; i < host.numel(); ++i) {
      const double magnitude = std::fabs(static_cast<double>(host.data<T>()[i]));
      if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    }
    return largest;
  });
}

}  // namespace tessera
