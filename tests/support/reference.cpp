#include "tests/support/reference.h"

#include "core/support/error.h"

namespace tessera::testing {

void for_each_index(const Shape& shape, const std::function<void(const Index&)>& visit) {
  if (shape.numel() == 0) return;
  Index index(static_cast<std::size_t>(shape.rank()), 0);
  while (true) {
    visit(index);
    int axis = shape.rank() - 1;
    while (axis >= 0 && ++index[static_cast<std::size_t>(axis)] == shape[axis]) index[static_cast<std::size_t>(axis--)] = 0;
    if (axis < 0) return;
  }
}

double element(const Tensor& x, const Index& index) {
  const int missing = static_cast<int>(index.size()) - x.rank();
  TESSERA_CHECK(missing >= 0, ShapeError, "element: ", index.size(), " indices for ", x.shape());
  std::int64_t at = 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x.shape()[axis] != 1) at += index[static_cast<std::size_t>(axis + missing)] * x.strides()[axis];
  }
  switch (x.dtype()) {
    case DType::f64: return x.data<double>()[at];
    case DType::f32: return static_cast<double>(x.data<float>()[at]);
    case DType::i64: return static_cast<double>(x.data<std::int64_t>()[at]);
    default: throw DTypeError(str("element: x is ", describe(x)));
  }
}

Tensor build(const Shape& shape, const std::function<double(const Index&)>& value) {
  Tensor y = Tensor::empty(shape, DType::f64);
  double* to = y.data<double>();
  for_each_index(shape, [&](const Index& index) { *to++ = value(index); });
  return y;
}

}  // namespace tessera::testing
