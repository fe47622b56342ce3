// Built with fast-math, which vectorises erf, tanh and exp where core/cpu/rows has no kernel. Nothing here tests for NaN, and a
// NaN input gives a NaN output.
#include <algorithm>
#include <initializer_list>

#include "core/cpu/map.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/gelu.h"
#include "core/ops/gelu_math.h"

namespace tessera::cpu {
namespace {

template <class T>
void forward(const Tensor& x, GeluForm form, const Tensor& y) {
  const auto& kernels = rows::kernels().of<T>();
  const auto kernel = form == GeluForm::erf ? kernels.gelu_erf : kernels.gelu_tanh;
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(y.bytes()));
  parallel_for(x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernel(x.data<T>() + begin, end - begin, stores, y.data<T>() + begin);
  });
}

template <class T>
void backward(const Tensor& x, const Tensor& grad_y, GeluForm form, const Tensor& grad_x) {
  const auto& kernels = rows::kernels().of<T>();
  const auto kernel = form == GeluForm::erf ? kernels.gelu_erf_backward : kernels.gelu_tanh_backward;
  const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(grad_x.bytes()));
  parallel_for(x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    kernel(x.data<T>() + begin, grad_y.data<T>() + begin, end - begin, stores, grad_x.data<T>() + begin);
  });
}

bool all_contiguous(std::initializer_list<Tensor> tensors) {
  return std::ranges::all_of(tensors, [](const Tensor& x) { return x.is_contiguous(); });
}

}  // namespace

void gelu_forward(const Tensor& x, GeluForm form, const Tensor& y) {
  if (all_contiguous({x, y})) {
    if (x.dtype() == DType::f32) return forward<float>(x, form, y);
    if (x.dtype() == DType::bf16) return forward<bfloat16>(x, form, y);
  }
  if (form == GeluForm::erf)
    map("gelu", GeluErfForward{}, y, x);
  else
    map("gelu", GeluTanhForward{}, y, x);
}

void gelu_backward(const Tensor& x, const Tensor& grad_y, GeluForm form, const Tensor& grad_x) {
  if (all_contiguous({x, grad_y, grad_x})) {
    if (x.dtype() == DType::f32) return backward<float>(x, grad_y, form, grad_x);
    if (x.dtype() == DType::bf16) return backward<bfloat16>(x, grad_y, form, grad_x);
  }
  if (form == GeluForm::erf)
    map("gelu_backward", GeluErfBackward{}, grad_x, x, grad_y);
  else
    map("gelu_backward", GeluTanhBackward{}, grad_x, x, grad_y);
}

}  // namespace tessera::cpu
