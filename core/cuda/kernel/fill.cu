#include <cstdint>

#include "core/cuda/kernel/map.cuh"
#include "core/tensor_backend.h"

namespace tessera::cuda {
namespace {

template <class T>
struct Constant {
  T value;
  __device__ T operator()() const { return value; }
};

template <class T>
T rounded(double value) {
  if constexpr (sizeof(T) == 2) return T(static_cast<float>(value));
  else return static_cast<T>(value);
}

}  // namespace

void fill(const Tensor& target, double value) {
  dispatch_all(target.dtype(), [&]<class T>() { map_as(MapTypes<T>(), "fill", Constant<T>{rounded<T>(value)}, target); });
}

}  // namespace tessera::cuda
