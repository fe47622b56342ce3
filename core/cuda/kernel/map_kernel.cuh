// The kernel of core/cuda/kernel/map.cuh: what a thread loads, computes and stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/cuda/kernel/elements.cuh"
#include "core/cuda/kernel/strided_offsets.cuh"

namespace tessera::cuda::detail {

inline constexpr unsigned kMapBlock = 256;
// Items that a thread loads before it computes: enough bytes in flight to fill the memory's bandwidth.
template <std::size_t kInputs>
inline constexpr int kMapUnroll = kInputs > 2 ? 2 : 4;

// What a thread holds of operand K.
template <std::size_t K, class X, int kWidth, int kUnroll>
struct Held {
  Pack<X, kWidth> packs[kUnroll];
};
template <int kWidth, int kUnroll, class Indices, class... X>
struct AllHeld;
template <int kWidth, int kUnroll, std::size_t... K, class... X>
struct AllHeld<kWidth, kUnroll, std::index_sequence<K...>, X...> : Held<K, X, kWidth, kUnroll>... {};

template <int kWidth, class X>
__device__ inline Pack<X, kWidth> load_item(const X* from, bool repeats) {
  if (!repeats) return load_pack<kWidth>(from);
  Pack<X, kWidth> pack;
  const X element = *from;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) pack.elements[j] = element;
  return pack;
}

// Operand 0 of the walk is y. All loads stand before the first store; a thread behind the end loads the last item and drops it.
template <int kWidth, class F, class Y, std::size_t... K, class... X>
__device__ inline void map_items(const Walk<sizeof...(X) + 1>& walk, const F& f, Y* y, std::index_sequence<K...> indices,
                                 const X*... in) {
  constexpr int kUnroll = kMapUnroll<sizeof...(X)>;
  const std::uint32_t first = blockIdx.x * (kMapBlock * kUnroll) + threadIdx.x;
  AllHeld<kWidth, kUnroll, decltype(indices), X...> held;
  std::uint32_t at[kUnroll][sizeof...(X) + 1];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    walk.offsets(min(first + u * kMapBlock, walk.items - 1), at[u]);
    ((static_cast<Held<K, X, kWidth, kUnroll>&>(held).packs[u] = load_item<kWidth>(in + at[u][K + 1], walk.repeats[K + 1])), ...);
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (first + u * kMapBlock >= walk.items) return;
    Pack<Y, kWidth> out;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      out.elements[j] =
          element_of<Y>(f(number_of(static_cast<const Held<K, X, kWidth, kUnroll>&>(held).packs[u].elements[j])...));
    }
    store_pack(y + at[u][0], out);
  }
}

template <class F, class Y, std::size_t... K, class... X>
__device__ inline void map_tail(const Walk<sizeof...(X) + 1>& walk, int width, const F& f, Y* y, std::index_sequence<K...>,
                                const X*... in) {
  if (blockIdx.x != 0 || threadIdx.x >= walk.tail) return;
  const std::uint32_t at = walk.items * static_cast<std::uint32_t>(width) + threadIdx.x;
  y[at] = element_of<Y>(f(number_of(in[walk.repeats[K + 1] ? 0 : at])...));
}

template <int kWidth, class F, class Y, class... X>
__global__ void __launch_bounds__(kMapBlock)
    map_kernel(const __grid_constant__ Walk<sizeof...(X) + 1> walk, const F f, Y* y, const X*... in) {
  constexpr auto indices = std::make_index_sequence<sizeof...(X)>();
  if constexpr (kWidth > 1) map_tail(walk, kWidth, f, y, indices, in...);
  map_items<kWidth>(walk, f, y, indices, in...);
}

}  // namespace tessera::cuda::detail
