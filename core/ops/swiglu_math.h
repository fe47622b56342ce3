// The gated unit of silu, shared by both devices. No formula tests for NaN, so that they may be built with fast-math.
#pragma once

#include "core/ops/unary_exp_math.h"

namespace tessera {

template <class T>
TESSERA_HD inline T swiglu_of(T gate, T value) {
  return gate * stable_sigmoid(gate) * value;
}

template <class T>
struct SwigluGradient {
  T gate, value;
};

template <class T>
TESSERA_HD inline SwigluGradient<T> swiglu_gradient(T gate, T value, T g) {
  const T s = stable_sigmoid(gate);
  return {g * value * s * (T(1) + gate * (T(1) - s)), g * gate * s};
}

}  // namespace tessera
