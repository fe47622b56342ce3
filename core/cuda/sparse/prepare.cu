// Steps before and after the products: pixels, values in another order, sums of splits.
#include <cstdint>

#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/sparse/kernels.h"

namespace tessera::cuda::sparse {
namespace {

using cpu::sparse::Window;

__global__ void find_pixels_kernel(const __grid_constant__ Window window, std::int64_t positions, std::int64_t pitch,
                                   std::int64_t count, std::int32_t* pixels) {
  const Window::Axis &y = window.y, &x = window.x;
  const auto none = static_cast<std::int32_t>(window.images * y.sources * x.sources);
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    const std::int64_t tap = i / pitch, position = i % pitch;
    const std::int64_t line = position / x.results;
    const std::int64_t at_y = position < positions ? y.source_at(line % y.results, tap / x.taps) : -1;
    const std::int64_t at_x = position < positions ? x.source_at(position % x.results, tap % x.taps) : -1;
    const std::int64_t pixel = (line / y.results * y.sources + at_y) * x.sources + at_x;
    pixels[i] = at_y < 0 || at_x < 0 ? none : static_cast<std::int32_t>(pixel);
  }
}

template <class Number>
__global__ void permute_kernel(std::int64_t count, const Number* values, const std::int32_t* from, Number* to) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) to[i] = values[from[i]];
}

template <class Number>
__global__ void sum_splits_kernel(std::int64_t splits, std::int64_t count, const Number* partial, Number* to) {
  for (std::int64_t i = first_item(); i < count; i += item_stride()) {
    Number sum = partial[i];
    for (std::int64_t split = 1; split < splits; ++split) sum += partial[split * count + i];
    to[i] = sum;
  }
}

}  // namespace

void find_pixels(const Window& window, const Tensor& pixels) {
  const Device device = pixels.device();
  launch("sparse_pixels", device, grid_for(pixels.numel(), device), find_pixels_kernel, window, window.positions(), pixels.dim(1),
         pixels.numel(), pixels.data<std::int32_t>());
}

void permute_values(const Tensor& values, const Tensor& from, const Tensor& to) {
  const Device device = to.device();
  dispatch_real(values.dtype(), "sparse_permute", [&]<class Number>() {
    launch("sparse_permute", device, grid_for(to.numel(), device), permute_kernel<Number>, to.numel(), values.data<Number>(),
           from.data<std::int32_t>(), to.data<Number>());
  });
}

void sum_splits(const Tensor& partial, const Tensor& to) {
  const Device device = to.device();
  dispatch_real(to.dtype(), "sparse_splits", [&]<class Number>() {
    launch("sparse_splits", device, grid_for(to.numel(), device), sum_splits_kernel<Number>, partial.dim(0), to.numel(),
           partial.data<Number>(), to.data<Number>());
  });
}

}  // namespace tessera::cuda::sparse
