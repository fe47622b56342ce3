#include "core/finite.h"

#include <type_traits>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/reduce.cuh"

namespace tessera::cuda {
namespace {

struct Smaller {
  __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return min(a, b); }
};

template <class T>
struct BadOffset {
  const T* x;
  std::int64_t count;
  __device__ std::int64_t operator()(std::int64_t i) const { return isfinite(number_of(x[i])) ? count : i; }
};

template <class T>
struct FiniteMagnitude {
  const T* x;
  __device__ double operator()(std::int64_t i) const {
    const auto value = number_of(x[i]);
    return isfinite(value) ? fabs(static_cast<double>(value)) : 0.0;
  }
};

template <class V>
struct StoreResult {
  V* result;
  __device__ void operator()(const V& value) const { *result = value; }
};

}  // namespace

std::int64_t first_bad_offset(const Tensor& tensor) {
  const Tensor x = tensor.contiguous();
  const Tensor result = Tensor::empty({1}, DType::i64, x.device());
  const StoreResult<std::int64_t> store{result.data<std::int64_t>()};
  dispatch_numbers(x.dtype(), "first_bad_element", [&]<class T>() {
    reduce_items("first_bad_element", x.device(), x.numel(), x.numel(), BadOffset<T>{x.data<T>(), x.numel()}, Smaller(), store);
  });
  return result.to_vector<std::int64_t>().front();
}

double largest_magnitude_of(const Tensor& tensor) {
  const Tensor x = tensor.contiguous();
  const Tensor result = Tensor::empty({1}, DType::f64, x.device());
  const StoreResult<double> store{result.data<double>()};
  dispatch_numbers(x.dtype(), "largest_magnitude", [&]<class T>() {
    reduce_items("largest_magnitude", x.device(), x.numel(), 0.0, FiniteMagnitude<T>{x.data<T>()}, Larger(), store);
  });
  return result.to_vector<double>().front();
}

}  // namespace tessera::cuda
