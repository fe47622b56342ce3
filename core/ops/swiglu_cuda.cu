#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/row_kernel.cuh"
#include "core/ops/swiglu.h"
#include "core/ops/swiglu_math.h"

namespace tessera::cuda {
namespace {

// A walk covers one row of y. In x that row begins row * n elements later, and its second half comes n elements after the first.
template <class T>
struct Forward {
  const T* x;
  std::int64_t n;
  T* y;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool) const {
    using Values = Numbers<T, Walk::kPack>;
    walk.for_each([&](int, std::int64_t at) {
      const std::int64_t from = at + walk.row * n;
      auto gate = Values::load(x + from);
      const auto value = Values::load(x + from + n);
      for (int i = 0; i < Walk::kPack; ++i) gate.at[i] = swiglu_of(gate.at[i], value.at[i]);
      gate.store(y + at);
    });
  }
};

template <class T>
struct Backward {
  const T* x;
  const T* g;
  std::int64_t n;
  T* grad_x;

  template <class Walk>
  __device__ void operator()(const Walk& walk, bool) const {
    using Values = Numbers<T, Walk::kPack>;
    walk.for_each([&](int, std::int64_t at) {
      const std::int64_t from = at + walk.row * n;
      auto gate = Values::load(x + from);
      auto value = Values::load(x + from + n);
      const auto here = Values::load(g + at);
      for (int i = 0; i < Walk::kPack; ++i) {
        const auto grad = swiglu_gradient(gate.at[i], value.at[i], here.at[i]);
        gate.at[i] = grad.gate;
        value.at[i] = grad.value;
      }
      gate.store(grad_x + from);
      value.store(grad_x + from + n);
    });
  }
};

}  // namespace

void swiglu_forward(const Tensor& x, const Tensor& y) {
  dispatch_numbers(x.dtype(), "swiglu", [&]<class T>() {
    const Forward<T> op{x.data<T>(), y.dim(1), y.data<T>()};
    launch_rows<T>("swiglu", x.device(), y.dim(0), y.dim(1), all_aligned(x, y), op);
  });
}

void swiglu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x) {
  dispatch_numbers(x.dtype(), "swiglu_backward", [&]<class T>() {
    const Backward<T> op{x.data<T>(), grad_y.data<T>(), grad_y.dim(1), grad_x.data<T>()};
    launch_rows<T>("swiglu_backward", x.device(), grad_y.dim(0), grad_y.dim(1), all_aligned(x, grad_y, grad_x), op);
  });
}

}  // namespace tessera::cuda
