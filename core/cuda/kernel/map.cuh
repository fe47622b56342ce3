// Elementwise kernels over strided operands: y = f(a, b, ...). CPU and GPU share the functors that hold the mathematics.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/cuda/kernel/compute_types.cuh"
#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/kernel/strided_offsets.cuh"
#include "core/tensor.h"

namespace tessera::cuda {

namespace detail {

inline constexpr unsigned kMapBlock = 256;
// Items that a thread loads before it computes: enough bytes in flight to fill the memory's bandwidth.
template <std::size_t kInputs>
inline constexpr int kMapUnroll = kInputs > 2 ? 2 : 4;

// The items of operand K that a thread has loaded.
template <std::size_t K, class X, int kWidth, int kUnroll>
struct LoadedOperand {
  Pack<X, kWidth> packs[kUnroll];
};
template <int kWidth, int kUnroll, class Indices, class... X>
struct LoadedOperands;
template <int kWidth, int kUnroll, std::size_t... K, class... X>
struct LoadedOperands<kWidth, kUnroll, std::index_sequence<K...>, X...> : LoadedOperand<K, X, kWidth, kUnroll>... {};

template <int kWidth, class X>
__device__ inline Pack<X, kWidth> load_item(const X* from, bool repeats) {
  if (!repeats) return load_pack<kWidth>(from);
  Pack<X, kWidth> pack;
  const X element = *from;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) pack.elements[j] = element;
  return pack;
}

// Operand 0 of the offsets is y. All loads come before the first store. A thread beyond the last item loads the last item and
// drops it.
template <int kWidth, class F, class Y, std::size_t... K, class... X>
__device__ inline void map_items(const StridedOffsets<sizeof...(X) + 1>& offsets, const F& f, Y* y,
                                 std::index_sequence<K...> indices, const X*... in) {
  constexpr int kUnroll = kMapUnroll<sizeof...(X)>;
  const std::uint32_t first = blockIdx.x * (kMapBlock * kUnroll) + threadIdx.x;
  LoadedOperands<kWidth, kUnroll, decltype(indices), X...> loaded;
  std::uint32_t at[kUnroll][sizeof...(X) + 1];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    offsets.of(min(first + u * kMapBlock, offsets.items - 1), at[u]);
    ((static_cast<LoadedOperand<K, X, kWidth, kUnroll>&>(loaded).packs[u] =
          load_item<kWidth>(in + at[u][K + 1], offsets.repeats[K + 1])),
     ...);
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (first + u * kMapBlock >= offsets.items) return;
    Pack<Y, kWidth> out;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      out.elements[j] =
          element_of<Y>(f(number_of(static_cast<const LoadedOperand<K, X, kWidth, kUnroll>&>(loaded).packs[u].elements[j])...));
    }
    store_pack(y + at[u][0], out);
  }
}

template <class F, class Y, std::size_t... K, class... X>
__device__ inline void map_tail(const StridedOffsets<sizeof...(X) + 1>& offsets, int width, const F& f, Y* y,
                                std::index_sequence<K...>, const X*... in) {
  if (blockIdx.x != 0 || threadIdx.x >= offsets.tail) return;
  const std::uint32_t at = offsets.items * static_cast<std::uint32_t>(width) + threadIdx.x;
  y[at] = element_of<Y>(f(number_of(in[offsets.repeats[K + 1] ? 0 : at])...));
}

template <int kWidth, class F, class Y, class... X>
__global__ void __launch_bounds__(kMapBlock)
    map_kernel(const __grid_constant__ StridedOffsets<sizeof...(X) + 1> offsets, const F f, Y* y, const X*... in) {
  constexpr auto indices = std::make_index_sequence<sizeof...(X)>();
  if constexpr (kWidth > 1) map_tail(offsets, kWidth, f, y, indices, in...);
  map_items<kWidth>(offsets, f, y, indices, in...);
}

template <std::size_t N>
bool takes_packs(const StridedLoop<N>& loop, int width, const std::array<const void*, N>& operands,
                 const std::array<std::size_t, N>& sizes) {
  if (loop.inner() < width || loop.inner_stride(0) != 1 || (loop.rank > 1 && loop.inner() % width != 0)) return false;
  for (std::size_t k = 0; k < N; ++k) {
    if (loop.inner_stride(k) == 0) continue;
    if (loop.inner_stride(k) != 1 || !is_aligned(operands[k], sizes[k] * static_cast<std::size_t>(width))) return false;
    for (std::size_t axis = 0; axis + 1 < static_cast<std::size_t>(loop.rank); ++axis) {
      if (loop.strides[k][axis] % width != 0) return false;
    }
  }
  return true;
}

template <class F, class Y, std::size_t... K, class... X>
void map_loop(const char* operation, Device device, const F& f, const StridedLoop<sizeof...(X) + 1>& loop, Y* y,
              std::index_sequence<K...>, const X*... in) {
  constexpr std::size_t kN = sizeof...(X) + 1;
  constexpr int kWidth = static_cast<int>(16 / std::max({sizeof(Y), sizeof(X)...}));
  constexpr std::int64_t kTile = std::int64_t{kMapBlock} * kMapUnroll<sizeof...(X)>;
  for_each_part(loop, {}, [&](const StridedLoop<kN>& part, const std::array<std::int64_t, kN>& at) {
    const bool packs = takes_packs<kN>(part, kWidth, {y + at[0], (in + at[K + 1])...}, {sizeof(Y), sizeof(X)...});
    const StridedOffsets<kN> offsets = strided_offsets(part, packs ? kWidth : 1);
    const LaunchShape shape{dim3(static_cast<unsigned>((offsets.items + kTile - 1) / kTile)), dim3(kMapBlock)};
    const auto kernel = packs ? map_kernel<kWidth, F, Y, X...> : map_kernel<1, F, Y, X...>;
    launch(operation, device, shape, kernel, offsets, f, y + at[0], (in + at[K + 1])...);
  });
}

template <class Y, class... X, class F, std::size_t... K>
void map_expanded(const char* operation, const F& f, const Tensor& y, std::index_sequence<K...> indices,
                  const std::array<Tensor, sizeof...(X)>& in) {
  const auto loop = make_strided_loop<sizeof...(X) + 1>({&y, &in[K]...});
  map_loop(operation, y.device(), f, loop, y.data<Y>(), indices, static_cast<const X*>(in[K].template data<X>())...);
}

}  // namespace detail

// Element types of y and of the inputs.
template <class Y, class... X>
struct MapTypes {};

template <class T, std::size_t kInputs, class... X>
struct OneType : OneType<T, kInputs - 1, T, X...> {};
template <class T, class... X>
struct OneType<T, 0, X...> {
  using Types = MapTypes<T, X...>;
};

// y [shape]; the inputs are broadcast to it. y may be one of the inputs, at the same elements. The functor gets number_of() of
// the elements: half types as float, others unchanged. Neighbouring elements move 16 bytes at a time if their addresses allow it.
template <class Y, class... X, class F, std::same_as<Tensor>... Inputs>
  requires(sizeof...(X) == sizeof...(Inputs))
void map_as(MapTypes<Y, X...>, const char* operation, const F& f, const Tensor& y, const Inputs&... inputs) {
  if (y.numel() == 0) return;
  detail::map_expanded<Y, X...>(operation, f, y, std::make_index_sequence<sizeof...(X)>(), {inputs.expand(y.shape())...});
}

// All tensors have one dtype: f32, f64, bf16 or f16. Functor: C operator()(C...) with C = float or double.
template <class F, std::same_as<Tensor>... Inputs>
void map(const char* operation, const F& f, const Tensor& y, const Inputs&... inputs) {
  dispatch_numbers(y.dtype(), operation, [&]<class T>() {
    map_as(typename OneType<T, sizeof...(Inputs)>::Types(), operation, f, y, inputs...);
  });
}

}  // namespace tessera::cuda
