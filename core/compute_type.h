// Half types are storage: kernels for them load elements into f32 registers, compute there and round once, on store.
#pragma once

#include "core/dtype.h"
#include "core/support/host_device.h"

namespace tessera {

// What a kernel computes in between loading and storing elements of type T: half types are storage, their arithmetic f32's.
template <class T> struct ComputeOf { using type = T; };
template <> struct ComputeOf<bfloat16> { using type = float; };
template <> struct ComputeOf<float16> { using type = float; };
template <class T> using Compute = typename ComputeOf<T>::type;

// An element as a number to compute with, and a result rounded to an element.
template <class T>
TESSERA_HD Compute<T> widen(T element) {
  return static_cast<Compute<T>>(element);
}
template <class T, class Number>
TESSERA_HD T narrow(Number value) {
  return static_cast<T>(static_cast<Compute<T>>(value));
}

// Calls f.operator()<T>() with the element type of a dtype that kernels compute in Compute<T> for: f32, f64 and bf16. Throws
// DTypeError, naming the operation, on every other one.
template <class F>
decltype(auto) dispatch_floating(DType dtype, const char* operation, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::bf16: return f.template operator()<bfloat16>();
    default: throw DTypeError(str(operation, ": dtype is ", name_of(dtype), "; needs f32, f64 or bf16"));
  }
}

}  // namespace tessera
