#include "core/cpu/winograd/winograd.h"

#include <algorithm>

#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/support/rounding.h"

namespace tessera::cpu::winograd {
namespace {

using reference::Conv2dGeometry;

// Bytes of the transformed tiles of a block, which share the second-level cache with the filters.
constexpr std::int64_t kBlockBytes = 768 * 1024;
constexpr std::int64_t kMostRows = 128;

Problem problem_of(const Conv2dGeometry& g) {
  return {g.n,
          {g.h, g.w, g.in},
          {g.oh, g.ow, g.out},
          g.options.padding.h,
          g.options.padding.w,
          ceil_div(g.oh, kOut),
          ceil_div(g.ow, kOut)};
}

// The gradient of x: a correlation of the gradient of y with the flipped filters, padded such that the result has x's size.
Problem transposed(const Conv2dGeometry& g) {
  return {g.n,
          {g.oh, g.ow, g.out},
          {g.h, g.w, g.in},
          kFilter - 1 - g.options.padding.h,
          kFilter - 1 - g.options.padding.w,
          ceil_div(g.h, kOut),
          ceil_div(g.w, kOut)};
}

// Calls body.operator()<T>() with the element type of the images.
template <class Body>
void of_images(DType dtype, const Body& body) {
  if (dtype == DType::bf16) return body.template operator()<bfloat16>();
  body.template operator()<float>();
}

// Calls body(block) for all tiles; every thread has its own scratch.
template <class Body>
void for_each_block(const Kernels& kernels, const Problem& p, Body&& body) {
  const std::int64_t channels = kernels.padded(p.x.channels) + kernels.padded(p.y.channels);
  const std::int64_t fitting = kBlockBytes / (kPositions * channels * static_cast<std::int64_t>(sizeof(float)));
  const int parts = parts_for(p.tiles(), kRowStep);
  const std::int64_t needed = round_up(ceil_div(p.tiles(), parts), kRowStep);
  const std::int64_t rows = std::min(needed, std::clamp(fitting / kRowStep * kRowStep, kRowStep, kMostRows));
  const std::int64_t each = kPositions * (channels * rows + 2 * Block::stride(rows, 0));
  const Tensor scratch = Tensor::empty({parts * each});
  const Tensor zeros = Tensor::zeros({std::max(p.x.channels, p.y.channels)});
  parallel_parts(p.tiles(), parts, [&](std::int64_t begin, std::int64_t end, int part) {
    for (std::int64_t first = begin; first < end; first += rows) {
      const std::int64_t count = std::min(rows, end - first);
      body(Block{first, count, round_up(count, kRowStep), scratch.data<float>() + part * each, zeros.data<float>()}, part);
    }
  });
}

void correlate(const Kernels& kernels, const Problem& p, const Tensor& x, const Tensor& u, const Epilogue& epilogue,
               const Tensor& y) {
  of_images(x.dtype(), [&]<class T>() {
    for_each_block(kernels, p, [&](const Block& block, int) {
      kernels.of<T>().forward(p, block, x.data<T>(), u.data<float>(), epilogue, y.data<T>());
    });
  });
}

}  // namespace

bool suits(const Conv2dGeometry& g) {
  const Extent one{1, 1};
  const auto& [stride, padding, dilation, groups] = g.options;
  return g.kh == kFilter && g.kw == kFilter && stride == one && dilation == one && groups == 1 && padding.h < kFilter &&
         padding.w < kFilter;
}

std::int64_t filter_bytes(const Conv2dGeometry& g) {
  return kPositions * kernels().padded(g.in) * kernels().padded(g.out) * static_cast<std::int64_t>(sizeof(float));
}

const Kernels& kernels() { return isa() == Isa::avx512 ? kAvx512Kernels : kAvx2Kernels; }

Tensor filters(const Kernels& kernels, const Tensor& weight) {
  const std::int64_t out = weight.dim(0);
  const std::int64_t in = weight.dim(3);
  const Tensor u = Tensor::empty({kPositions, in, kernels.padded(out)});
  parallel_for(in, std::max<std::int64_t>(1, kGrain / out), [&](std::int64_t begin, std::int64_t end) {
    kernels.filters(weight.data<float>(), in, out, begin, end, u.data<float>());
  });
  return u;
}

Tensor turned_filters(const Kernels& kernels, const Tensor& weight) {
  const std::int64_t out = weight.dim(0);
  const std::int64_t in = weight.dim(3);
  const Tensor u = Tensor::empty({kPositions, out, kernels.padded(in)});
  parallel_for(out, std::max<std::int64_t>(1, kGrain / in), [&](std::int64_t begin, std::int64_t end) {
    kernels.turned_filters(weight.data<float>(), in, out, begin, end, u.data<float>());
  });
  return u;
}

void forward(const Kernels& kernels, const Conv2dGeometry& g, const Tensor& x, const Tensor& filters, const Epilogue& epilogue,
             const Tensor& y) {
  correlate(kernels, problem_of(g), x, filters, epilogue, y);
}

void backward_input(const Kernels& kernels, const Conv2dGeometry& g, const Tensor& grad_y, const Tensor& turned_filters,
                    const Tensor& grad_x) {
  correlate(kernels, transposed(g), grad_y, turned_filters, {}, grad_x);
}

void backward_weight(const Kernels& kernels, const Conv2dGeometry& g, const Tensor& x, const Tensor& grad_y,
                     const Tensor& grad_weight) {
  const Problem p = problem_of(g);
  const std::int64_t size = kPositions * kernels.padded(g.in) * kernels.padded(g.out);
  const int parts = parts_for(p.tiles(), kRowStep);
  const Tensor sums = Tensor::zeros({parts, size});
  float* const total = sums.data<float>();
  of_images(x.dtype(), [&]<class T>() {
    for_each_block(kernels, p, [&](const Block& block, int part) {
      kernels.of<T>().add_filter_grad(p, block, x.data<T>(), grad_y.data<T>(), total + part * size);
    });
  });
  parallel_for(size, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (int part = 1; part < parts; ++part) {
      const float* const from = total + part * size;
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) total[i] += from[i];
    }
  });
  parallel_for(g.in, std::max<std::int64_t>(1, kGrain / g.out), [&](std::int64_t begin, std::int64_t end) {
    kernels.filter_grads(total, g.in, g.out, begin, end, grad_weight.data<float>());
  });
}

}  // namespace tessera::cpu::winograd
