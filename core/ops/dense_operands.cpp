#include "core/ops/dense_operands.h"

#include <algorithm>
#include <limits>

#include "core/device/precision.h"
#include "core/ops/operands.h"
#include "core/support/counting.h"

namespace tessera {

namespace {

void check_beside(const char* operation, const NamedOperand& first, const NamedOperand& operand, DType wanted) {
  const bool equal = wanted == first.value.dtype();
  TESSERA_CHECK(operand.value.dtype() == wanted, DTypeError, operation, ": dtypes differ: ", first.name, " is ",
                describe(first.value), ", ", operand.name, " is ", describe(operand.value), "; ",
                equal ? std::string("all must be equal") : str(operand.name, " must be ", wanted));
  TESSERA_CHECK(operand.value.device() == first.value.device(), DeviceError, operation, ": devices differ: ", first.name, " is ",
                describe(first.value), ", ", operand.name, " is ", describe(operand.value), "; all must be equal");
}

}  // namespace

void check_operands(const char* operation, std::initializer_list<NamedOperand> operands) {
  const NamedOperand& first = *operands.begin();
  check_dtype(operation, first.value);
  for (const NamedOperand& operand : operands) check_beside(operation, first, operand, first.value.dtype());
}

void check_parameters(const char* operation, const NamedOperand& x, std::initializer_list<NamedOperand> parameters) {
  check_dtype(operation, x.value);
  for (const NamedOperand& parameter : parameters) {
    check_beside(operation, x, parameter, parameter_dtype(x.value.dtype()));
  }
}

Tensor as_rows(const Tensor& x) { return x.reshape({x.shape().erase(x.rank() - 1).numel(), x.dim(-1)}); }

std::int64_t window_count(const char* operation, const char* axis, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                          std::int64_t padding, std::int64_t dilation) {
  TESSERA_CHECK(kernel >= 1 && stride >= 1 && padding >= 0 && dilation >= 1, ShapeError, operation, ": illegal window along the ",
                axis, ": kernel ", kernel, ", stride ", stride, ", padding ", padding, ", dilation ", dilation,
                "; kernel, stride and dilation must be at least 1, padding at least 0");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  TESSERA_CHECK(std::max({size, kernel, stride, padding, dilation}) <= kMost, ShapeError, operation, ": window along the ", axis,
                " too large: ", axis, " is ", size, ", kernel ", kernel, ", stride ", stride, ", padding ", padding,
                ", dilation ", dilation, "; each must fit in 31 bits");
  const std::int64_t reach = dilation * (kernel - 1) + 1;
  TESSERA_CHECK(size + 2 * padding >= reach, ShapeError, operation, ": window larger than the padded ", axis, ": ", axis, " is ",
                size, ", padding ", padding, ", kernel ", kernel, ", dilation ", dilation, "; ", axis,
                " + 2 * padding must be at least dilation * (kernel - 1) + 1");
  return (size + 2 * padding - reach) / stride + 1;
}

const Shape& checked_size(const char* operation, const Shape& y) {
  TESSERA_CHECK(can_be_counted(y), ShapeError, operation, ": result too large: ", y, "; must have at most 2^40 elements");
  return y;
}

}  // namespace tessera
