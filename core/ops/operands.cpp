#include "core/ops/operands.h"

#include <algorithm>
#include <string_view>

#include "core/device/precision.h"
#include "core/support/error.h"

namespace tessera {
namespace {

void check_devices(const char* operation, const char* name_a, const Tensor& a, const char* name_b, const Tensor& b) {
  TESSERA_CHECK(a.device() == b.device(), DeviceError, operation, ": devices differ: ", name_a, " is ", describe(a), ", ", name_b,
                " is ", describe(b));
}

// The CPU kernels support f16 for storage only.
bool computes(const Tensor& x) {
  const DType dtype = x.dtype();
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || (dtype == DType::f16 && x.device().is_cuda());
}

const char* computed(const Tensor& x) { return x.device().is_cuda() ? "f32, f64, bf16 or f16" : "f32, f64 or bf16"; }

}  // namespace

void check_floating(const char* operation, const Tensor& x) {
  TESSERA_CHECK(computes(x), DTypeError, operation, ": x is ", describe(x), "; needs ", computed(x));
}

void check_dtype(const char* operation, const Tensor& x) {
  TESSERA_CHECK(computes(x), DTypeError, operation, ": dtype is ", x.dtype(), "; needs ", computed(x));
}

void check_real(const char* operation, const Tensor& x) {
  TESSERA_CHECK(std::ranges::find(kUnroundedOps, std::string_view(operation)) != kUnroundedOps.end(), InternalError, operation,
                " is not in the table of ops that stay in f32");
  TESSERA_CHECK(x.dtype() == DType::f32 || x.dtype() == DType::f64, DTypeError, operation, ": x is ", describe(x),
                "; needs f32 or f64");
}

void check_operands(const char* operation, const char* name_a, const Tensor& a, const char* name_b, const Tensor& b) {
  check_devices(operation, name_a, a, name_b, b);
  TESSERA_CHECK(a.dtype() == b.dtype(), DTypeError, operation, ": dtypes differ: ", name_a, " is ", describe(a), ", ", name_b,
                " is ", describe(b));
  TESSERA_CHECK(computes(a), DTypeError, operation, ": ", name_a, " is ", describe(a), ", ", name_b, " is ", describe(b),
                "; needs ", computed(a));
}

void check_companion(const char* operation, const char* name_x, const Tensor& x, const char* name, const Tensor& companion,
                     DType dtype) {
  TESSERA_CHECK(companion.defined(), InternalError, operation, ": ", name, " is undefined");
  TESSERA_CHECK(companion.dtype() == dtype, DTypeError, operation, ": ", name, " is ", describe(companion), "; needs ", dtype,
                " (", name_x, " is ", describe(x), ")");
  check_devices(operation, name_x, x, name, companion);
}

}  // namespace tessera
