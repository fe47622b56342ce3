#include <cstdint>
#include <limits>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/reduce.cuh"
#include "core/cuda/kernel/strided_offsets.cuh"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"

namespace tessera::cuda {
namespace {

// For more items than 32 bits can count.
struct WideDivisor {
  std::int64_t divisor = 1;
  __device__ std::int64_t quotient(std::int64_t n) const { return n / divisor; }
};

// Items are packs of channels, channels innermost: [images, height, width, packs].
template <class D>
struct Pixels {
  std::int64_t items = 0;
  D packs, width, height;
};

// Place of an item. `pixel` counts over images, rows and columns.
struct Place {
  std::int64_t image, pixel, y, x, channel;
};

template <int N, class Op, class D>
__global__ void __launch_bounds__(256) pixels_kernel(const Op op, const Pixels<D> pixels) {
  using Index = decltype(pixels.packs.divisor);
  for (std::int64_t item = first_item(); item < pixels.items; item += item_stride()) {
    const auto index = static_cast<Index>(item);
    const Index pixel = pixels.packs.quotient(index);
    const Index row = pixels.width.quotient(pixel);
    const Index image = pixels.height.quotient(row);
    op.template apply<N>({.image = image,
                          .pixel = pixel,
                          .y = row - image * pixels.height.divisor,
                          .x = pixel - row * pixels.width.divisor,
                          .channel = std::int64_t{index - pixel * pixels.packs.divisor} * N});
  }
}

template <int N, class Op>
void launch_pixels(const char* name, const Tensor& images, const Op& op) {
  const std::int64_t packs = images.dim(3) / N;
  const std::int64_t items = images.numel() / N;
  const LaunchShape shape = grid_for(items, images.device());
  if (items > std::numeric_limits<std::int32_t>::max()) {
    const Pixels<WideDivisor> pixels{items, {packs}, {images.dim(2)}, {images.dim(1)}};
    return launch(name, images.device(), shape, pixels_kernel<N, Op, WideDivisor>, op, pixels);
  }
  const auto divisor = [](std::int64_t size) { return Divisor(static_cast<std::uint32_t>(size)); };
  const Pixels<Divisor> pixels{items, divisor(packs), divisor(images.dim(2)), divisor(images.dim(1))};
  launch(name, images.device(), shape, pixels_kernel<N, Op, Divisor>, op, pixels);
}

// Calls op.apply<N>(place) for every pack of channels of `images` [n, h, w, c].
template <class T, class Op>
void for_each_pack(const char* name, const Tensor& images, bool aligned, const Op& op) {
  if (images.numel() == 0) return;
  if (aligned && images.dim(3) % kWidest<T> == 0) return launch_pixels<kWidest<T>>(name, images, op);
  launch_pixels<1>(name, images, op);
}

// One axis of the windows, with `in` inputs and `out` outputs.
struct Axis {
  std::int64_t in, out, kernel, stride, padding;

  __device__ std::int64_t begin(std::int64_t output) const { return ::max(output * stride - padding, std::int64_t{0}); }
  __device__ std::int64_t end(std::int64_t output) const { return ::min(output * stride - padding + kernel, in); }
  // Outputs whose window covers an input: first <= output < last.
  __device__ std::int64_t first(std::int64_t input) const {
    const std::int64_t least = input + padding - kernel + 1;
    return least <= 0 ? 0 : (least + stride - 1) / stride;
  }
  __device__ std::int64_t last(std::int64_t input) const { return ::min((input + padding) / stride + 1, out); }
};

struct Windows {
  Axis rows, columns;
  std::int64_t channels;

  __device__ std::int64_t pixels(std::int64_t oy, std::int64_t ox) const {
    return (rows.end(oy) - rows.begin(oy)) * (columns.end(ox) - columns.begin(ox));
  }
  // Calls visit(iy * w + ix, element of x) for the inputs of an output, in row-major order.
  template <class Visit>
  __device__ void for_each_input(const Place& at, Visit&& visit) const {
    for (std::int64_t iy = rows.begin(at.y); iy < rows.end(at.y); ++iy) {
      for (std::int64_t ix = columns.begin(at.x); ix < columns.end(at.x); ++ix) {
        visit(iy * columns.in + ix, ((at.image * rows.in + iy) * columns.in + ix) * channels + at.channel);
      }
    }
  }
  // Calls visit(oy, ox, element of y) for the outputs of an input, in row-major order. An element is written by one thread only.
  template <class Visit>
  __device__ void for_each_output(const Place& at, Visit&& visit) const {
    const std::int64_t last_row = rows.last(at.y);
    const std::int64_t first_column = columns.first(at.x);
    const std::int64_t last_column = columns.last(at.x);
    for (std::int64_t oy = rows.first(at.y); oy < last_row; ++oy) {
      for (std::int64_t ox = first_column; ox < last_column; ++ox) {
        visit(oy, ox, ((at.image * rows.out + oy) * columns.out + ox) * channels + at.channel);
      }
    }
  }
};

Windows windows_of(const Tensor& x, const Tensor& y, const Pool2dOptions& o) {
  return {{x.dim(1), y.dim(1), o.kernel.h, o.stride.h, o.padding.h},
          {x.dim(2), y.dim(2), o.kernel.w, o.stride.w, o.padding.w},
          x.dim(3)};
}

template <class T>
struct MaxForward {
  using C = Compute<T>;
  Windows windows;
  const T* x;
  T* y;
  std::int32_t* argmax;

  template <int N>
  __device__ void apply(const Place& at) const {
    Numbers<T, N> best;
    Numbers<std::int32_t, N> where;
    bool first = true;
    windows.for_each_input(at, [&](std::int64_t pixel, std::int64_t element) {
      const auto candidate = Numbers<T, N>::load(x + element);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const C value = candidate.at[i];
        if (!first && !(value > best.at[i]) && value == value) continue;
        best.at[i] = value;
        where.at[i] = static_cast<std::int32_t>(pixel);
      }
      first = false;
    });
    best.store(y + at.pixel * windows.channels + at.channel);
    where.store(argmax + at.pixel * windows.channels + at.channel);
  }
};

template <class T>
struct MaxBackward {
  using C = Compute<T>;
  Windows windows;
  const T* g;
  const std::int32_t* argmax;
  T* grad_x;

  template <int N>
  __device__ void apply(const Place& at) const {
    Numbers<T, N> sum{};
    const auto here = static_cast<std::int32_t>(at.y * windows.columns.in + at.x);
    windows.for_each_output(at, [&](std::int64_t, std::int64_t, std::int64_t element) {
      const auto where = Numbers<std::int32_t, N>::load(argmax + element);
      const auto grad = Numbers<T, N>::load(g + element);
#pragma unroll
      for (int i = 0; i < N; ++i) sum.at[i] += where.at[i] == here ? grad.at[i] : C(0);
    });
    sum.store(grad_x + at.pixel * windows.channels + at.channel);
  }
};

template <class T>
struct AverageForward {
  using C = Compute<T>;
  Windows windows;
  const T* x;
  T* y;

  template <int N>
  __device__ void apply(const Place& at) const {
    Numbers<T, N> sum{};
    windows.for_each_input(at, [&](std::int64_t, std::int64_t element) {
      const auto here = Numbers<T, N>::load(x + element);
#pragma unroll
      for (int i = 0; i < N; ++i) sum.at[i] += here.at[i];
    });
    const C share = C(1) / static_cast<C>(windows.pixels(at.y, at.x));
#pragma unroll
    for (int i = 0; i < N; ++i) sum.at[i] *= share;
    sum.store(y + at.pixel * windows.channels + at.channel);
  }
};

template <class T>
struct AverageBackward {
  using C = Compute<T>;
  Windows windows;
  const T* g;
  T* grad_x;

  template <int N>
  __device__ void apply(const Place& at) const {
    Numbers<T, N> sum{};
    windows.for_each_output(at, [&](std::int64_t oy, std::int64_t ox, std::int64_t element) {
      const C share = C(1) / static_cast<C>(windows.pixels(oy, ox));
      const auto grad = Numbers<T, N>::load(g + element);
#pragma unroll
      for (int i = 0; i < N; ++i) sum.at[i] += grad.at[i] * share;
    });
    sum.store(grad_x + at.pixel * windows.channels + at.channel);
  }
};

template <class T>
struct GlobalBackward {
  using C = Compute<T>;
  const T* g;
  T* grad_x;
  std::int64_t channels;
  C share;

  template <int N>
  __device__ void apply(const Place& at) const {
    auto grad = Numbers<T, N>::load(g + at.image * channels + at.channel);
#pragma unroll
    for (int i = 0; i < N; ++i) grad.at[i] *= share;
    grad.store(grad_x + at.pixel * channels + at.channel);
  }
};

}  // namespace

void max_pool2d_forward(const Tensor& x, const Tensor& y, const Tensor& argmax, const Pool2dOptions& options) {
  dispatch_numbers(x.dtype(), "max_pool2d", [&]<class T>() {
    const MaxForward<T> op{windows_of(x, y, options), x.data<T>(), y.data<T>(), argmax.data<std::int32_t>()};
    for_each_pack<T>("max_pool2d", y, all_aligned(x, y, argmax), op);
  });
}

void max_pool2d_backward(const Tensor& grad_y, const Tensor& argmax, const Tensor& grad_x, const Pool2dOptions& options) {
  const Tensor g = grad_y.contiguous();
  dispatch_numbers(grad_x.dtype(), "max_pool2d_backward", [&]<class T>() {
    const MaxBackward<T> op{windows_of(grad_x, g, options), g.data<T>(), argmax.data<std::int32_t>(), grad_x.data<T>()};
    for_each_pack<T>("max_pool2d_backward", grad_x, all_aligned(g, argmax, grad_x), op);
  });
}

void avg_pool2d_forward(const Tensor& x, const Tensor& y, const Pool2dOptions& options) {
  dispatch_numbers(x.dtype(), "avg_pool2d", [&]<class T>() {
    const AverageForward<T> op{windows_of(x, y, options), x.data<T>(), y.data<T>()};
    for_each_pack<T>("avg_pool2d", y, all_aligned(x, y), op);
  });
}

void avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x, const Pool2dOptions& options) {
  const Tensor g = grad_y.contiguous();
  dispatch_numbers(grad_x.dtype(), "avg_pool2d_backward", [&]<class T>() {
    const AverageBackward<T> op{windows_of(grad_x, g, options), g.data<T>(), grad_x.data<T>()};
    for_each_pack<T>("avg_pool2d_backward", grad_x, all_aligned(g, grad_x), op);
  });
}

void global_avg_pool_forward(const Tensor& x, const Tensor& y) {
  const std::int64_t pixels = x.dim(1) * x.dim(2);
  sum_forward(x.reshape({x.dim(0), pixels, x.dim(3)}), 1.0 / static_cast<double>(pixels), y.reshape({x.dim(0), 1, x.dim(3)}));
}

void global_avg_pool_backward(const Tensor& grad_y, const Tensor& grad_x) {
  const Tensor g = grad_y.contiguous();
  dispatch_numbers(grad_x.dtype(), "global_avg_pool_backward", [&]<class T>() {
    using C = Compute<T>;
    const C share = C(1) / static_cast<C>(grad_x.dim(1) * grad_x.dim(2));
    const GlobalBackward<T> op{g.data<T>(), grad_x.data<T>(), grad_x.dim(3), share};
    for_each_pack<T>("global_avg_pool_backward", grad_x, all_aligned(g, grad_x), op);
  });
}

}  // namespace tessera::cuda
