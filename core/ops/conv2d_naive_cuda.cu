#include "core/ops/conv2d_naive_cuda.h"

#include <algorithm>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/kernel/reduce.cuh"

namespace tessera::cuda {
namespace {

using Index = std::int64_t;

template <class T>
__device__ double as_double(T element) {
  return static_cast<double>(widen(element));
}

// Each thread sums one element of y.
template <class T>
__global__ void conv2d_forward_kernel(Conv2dGeometry g, Index group_in, Index group_out, const T* x, const T* weight, T* y) {
  const auto& [stride, padding, dilation, groups] = g.options;
  const Index count = g.n * g.oh * g.ow * g.out;
  for (Index i = first_item(); i < count; i += item_stride()) {
    const Index o = i % g.out;
    const Index ox = i / g.out % g.ow;
    const Index oy = i / (g.out * g.ow) % g.oh;
    const Index image = i / (g.out * g.ow * g.oh);
    double sum = 0;
    for (Index ky = 0; ky < g.kh; ++ky) {
      const Index iy = oy * stride.h - padding.h + ky * dilation.h;
      if (iy < 0 || iy >= g.h) continue;
      for (Index kx = 0; kx < g.kw; ++kx) {
        const Index ix = ox * stride.w - padding.w + kx * dilation.w;
        if (ix < 0 || ix >= g.w) continue;
        const T* const source = x + ((image * g.h + iy) * g.w + ix) * g.in + o / group_out * group_in;
        const T* const taps = weight + ((o * g.kh + ky) * g.kw + kx) * group_in;
        for (Index c = 0; c < group_in; ++c) sum += as_double(source[c]) * as_double(taps[c]);
      }
    }
    y[i] = narrow<T>(sum);
  }
}

// Each thread sums one element of grad_x over the outputs that read it: those with oy * stride - padding + ky * dilation = iy.
template <class T>
__global__ void conv2d_backward_input_kernel(Conv2dGeometry g, Index group_in, Index group_out, const T* grad_y, const T* weight,
                                             T* grad_x) {
  const auto& [stride, padding, dilation, groups] = g.options;
  const Index count = g.n * g.h * g.w * g.in;
  for (Index i = first_item(); i < count; i += item_stride()) {
    const Index channel = i % g.in;
    const Index ix = i / g.in % g.w;
    const Index iy = i / (g.in * g.w) % g.h;
    const Index image = i / (g.in * g.w * g.h);
    const Index first = channel / group_in * group_out;  // first output channel of the channel's group
    double sum = 0;
    for (Index ky = 0; ky < g.kh; ++ky) {
      const Index down = iy + padding.h - ky * dilation.h;
      if (down < 0 || down % stride.h != 0 || down / stride.h >= g.oh) continue;
      for (Index kx = 0; kx < g.kw; ++kx) {
        const Index right = ix + padding.w - kx * dilation.w;
        if (right < 0 || right % stride.w != 0 || right / stride.w >= g.ow) continue;
        const T* const source = grad_y + ((image * g.oh + down / stride.h) * g.ow + right / stride.w) * g.out;
        const T* const taps = weight + (ky * g.kw + kx) * group_in + channel % group_in;
        for (Index o = first; o < first + group_out; ++o) {
          sum += as_double(source[o]) * as_double(taps[o * g.kh * g.kw * group_in]);
        }
      }
    }
    grad_x[i] = narrow<T>(sum);
  }
}

constexpr unsigned kThreads = 256;

// Each block sums one element of grad_weight. A thread takes every kThreads-th output position.
template <class T, class W>
__global__ void conv2d_backward_weight_kernel(Conv2dGeometry g, Index group_in, Index group_out, const T* x, const T* grad_y,
                                              W* grad_weight) {
  const auto& [stride, padding, dilation, groups] = g.options;
  const Index count = g.out * g.kh * g.kw * group_in;
  for (Index i = blockIdx.x; i < count; i += gridDim.x) {
    const Index channel = i % group_in;
    const Index kx = i / group_in % g.kw;
    const Index ky = i / (group_in * g.kw) % g.kh;
    const Index o = i / (group_in * g.kw * g.kh);
    double sum = 0;
    for (Index at = threadIdx.x; at < g.n * g.oh * g.ow; at += kThreads) {
      const Index iy = at / g.ow % g.oh * stride.h - padding.h + ky * dilation.h;
      const Index ix = at % g.ow * stride.w - padding.w + kx * dilation.w;
      if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) continue;
      const Index pixel = (at / (g.ow * g.oh) * g.h + iy) * g.w + ix;
      sum += as_double(x[pixel * g.in + o / group_out * group_in + channel]) * as_double(grad_y[at * g.out + o]);
    }
    const double total = block_reduce<kThreads>(sum, Plus());
    if (threadIdx.x == 0) grad_weight[i] = narrow<W>(total);
  }
}

template <class T, class W>
void run_backward_weight(const Conv2dGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight) {
  constexpr Index kMostBlocks = 1 << 20;
  const LaunchShape shape{dim3(static_cast<unsigned>(std::min(grad_weight.numel(), kMostBlocks))), dim3(kThreads)};
  launch("conv2d_backward_weight", x.device(), shape, conv2d_backward_weight_kernel<T, W>, g, g.group_in(), g.group_out(),
         x.data<T>(), grad_y.data<T>(), grad_weight.data<W>());
}

template <class T>
void run(Conv2dPass pass, const Conv2dGeometry& g, const Tensor& a, const Tensor& b, const Tensor& result) {
  const LaunchShape shape = grid_for(result.numel(), result.device());
  switch (pass) {
    case Conv2dPass::forward:
      return launch("conv2d_forward", a.device(), shape, conv2d_forward_kernel<T>, g, g.group_in(), g.group_out(), a.data<T>(),
                    b.data<T>(), result.data<T>());
    case Conv2dPass::backward_input:
      return launch("conv2d_backward_input", a.device(), shape, conv2d_backward_input_kernel<T>, g, g.group_in(), g.group_out(),
                    a.data<T>(), b.data<T>(), result.data<T>());
    case Conv2dPass::backward_weight:
      if (result.dtype() == a.dtype()) return run_backward_weight<T, T>(g, a, b, result);
      return run_backward_weight<T, float>(g, a, b, result);
  }
}

}  // namespace

void conv2d_naive(Conv2dPass pass, const Conv2dGeometry& g, const Tensor& a, const Tensor& b, const Tensor& result) {
  dispatch_numbers(a.dtype(), "conv2d", [&]<class T>() { run<T>(pass, g, a, b, result); });
}

}  // namespace tessera::cuda
