// Built with fast-math, which vectorises erf, tanh and exp of what has no kernel in core/cpu/rows; nothing here tests for NaN,
// and NaN in gives NaN out.
#include "core/cpu/map.h"
#include "core/cpu/parallel.h"
#include "core/cpu/rows/problem.h"
#include "core/ops/gelu.h"
#include "core/ops/gelu_math.h"

namespace tessera::cpu {
namespace {

bool is_plain(const Tensor& x) { return x.dtype() == DType::f32 && x.is_contiguous(); }

}  // namespace

void gelu_forward(const Tensor& x, GeluForm form, const Tensor& y) {
  if (is_plain(x) && is_plain(y)) {
    const auto kernel = form == GeluForm::erf ? rows::kernels().gelu_erf : rows::kernels().gelu_tanh;
    const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(y.bytes()));
    return parallel_for(x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernel(x.data<float>() + begin, end - begin, stores, y.data<float>() + begin);
    });
  }
  if (form == GeluForm::erf)
    map("gelu", GeluErfForward{}, y, x);
  else
    map("gelu", GeluTanhForward{}, y, x);
}

void gelu_backward(const Tensor& x, const Tensor& grad_y, GeluForm form, const Tensor& grad_x) {
  if (is_plain(x) && is_plain(grad_y) && is_plain(grad_x)) {
    const auto kernel = form == GeluForm::erf ? rows::kernels().gelu_erf_backward : rows::kernels().gelu_tanh_backward;
    const rows::Stores stores = rows::stores_for(static_cast<std::int64_t>(grad_x.bytes()));
    return parallel_for(x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernel(x.data<float>() + begin, grad_y.data<float>() + begin, end - begin, stores, grad_x.data<float>() + begin);
    });
  }
  if (form == GeluForm::erf)
    map("gelu_backward", GeluErfBackward{}, grad_x, x, grad_y);
  else
    map("gelu_backward", GeluTanhBackward{}, grad_x, x, grad_y);
}

}  // namespace tessera::cpu
