// Element types that kernels on a GPU compute with.
#pragma once

#include "core/compute_type.h"
#include "core/support/error.h"

namespace tessera::cuda {

// Calls f.operator()<T>() with the element type of the dtype if kernels compute with it (in Compute<T>): f32, f64, bf16 and f16.
// Throws DTypeError, naming the operation, for every other dtype.
template <class F>
decltype(auto) dispatch_numbers(DType dtype, const char* operation, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::bf16: return f.template operator()<bfloat16>();
    case DType::f16: return f.template operator()<float16>();
    default: throw DTypeError(str(operation, ": dtype is ", name_of(dtype), "; needs f32, f64, bf16 or f16"));
  }
}

}  // namespace tessera::cuda
