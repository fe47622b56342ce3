// Reductions in a fixed order: within a warp, within a block, and over many items in two passes. No atomics, so that every run
// gives the same bits on the same chip.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/cuda/kernel/launch.cuh"
#include "core/cuda/kernel/elements.cuh"
#include "core/tensor.h"

namespace tessera::cuda {

// The larger of two numbers. A NaN loses to a number, so the result is NaN only if both are.
__device__ inline float larger(float a, float b) { return fmaxf(a, b); }
__device__ inline double larger(double a, double b) { return fmax(a, b); }

struct Plus {
  template <class V>
  __device__ V operator()(V a, V b) const { return a + b; }
};
struct Larger {
  template <class V>
  __device__ V operator()(V a, V b) const { return larger(a, b); }
};

template <class V>
__device__ V shuffle_xor(const V& value, int mask) {
  static_assert(sizeof(V) % 4 == 0, "shuffles move words");
  struct Words {
    std::uint32_t at[sizeof(V) / 4];
  };
  Words words = std::bit_cast<Words>(value);
#pragma unroll
  for (std::uint32_t& word : words.at) word = __shfl_xor_sync(0xffffffffu, word, mask);
  return std::bit_cast<V>(words);
}

// Reduces over groups of kWidth neighbouring lanes (a power of two). Every lane of the warp takes part and gets its group's
// result. The lower lane's value is the first operand, so that both lanes of a pair compute the same bits.
template <int kWidth, class V, class Join>
__device__ V warp_reduce(V value, Join join) {
#pragma unroll
  for (int mask = kWidth / 2; mask > 0; mask /= 2) {
    const V other = shuffle_xor(value, mask);
    value = (threadIdx.x & static_cast<unsigned>(mask)) == 0 ? join(value, other) : join(other, value);
  }
  return value;
}

// Reduces over the kThreads threads of a block (a power of two, 64 to 1024). Every thread gets the result.
template <int kThreads, class V, class Join>
__device__ V block_reduce(V value, Join join) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kWarps >= 2 && kWarps <= 32 && (kWarps & (kWarps - 1)) == 0);
  __shared__ __align__(16) std::byte room[kWarps * sizeof(V)];  // bytes, because shared objects cannot have constructors
  V* const parts = reinterpret_cast<V*>(room);
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  value = warp_reduce<32>(value, join);
  __syncthreads();  // after the reads of the last call
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  return warp_reduce<kWarps>(parts[threadIdx.x % kWarps], join);
}

namespace detail {

inline constexpr int kItemsBlock = 256;

template <class State, class Item, class Join>
__global__ void __launch_bounds__(kItemsBlock)
    reduce_items_kernel(const Item item, const Join join, const State neutral, std::int64_t count, State* partials) {
  State mine = neutral;
#pragma unroll 4
  for (std::int64_t i = first_item(); i < count; i += item_stride()) mine = join(mine, item(i));
  mine = block_reduce<kItemsBlock>(mine, join);
  if (threadIdx.x == 0) partials[blockIdx.x] = mine;
}

template <class State, class Join, class Finish>
__global__ void __launch_bounds__(kItemsBlock)
    join_partials_kernel(const Join join, const Finish finish, const State neutral, int parts, const State* partials) {
  State mine = neutral;
  for (int i = static_cast<int>(threadIdx.x); i < parts; i += kItemsBlock) mine = join(mine, partials[i]);
  mine = block_reduce<kItemsBlock>(mine, join);
  if (threadIdx.x == 0) finish(mine);
}

}  // namespace detail

// A tensor of bytes with room for `count` intermediate results on the device.
template <class State>
Tensor states_on(Device device, std::int64_t count) {
  return Tensor::empty({count * static_cast<std::int64_t>(sizeof(State))}, DType::u8, device);
}

// Calls finish(state) on the device, with item(0) ... item(count - 1) joined to `neutral`. Items are read in grid strides: join
// must be associative and commutative up to rounding.
template <class State, class Item, class Join, class Finish>
void reduce_items(const char* name, Device device, std::int64_t count, const State& neutral, const Item& item, const Join& join,
                  const Finish& finish) {
  const LaunchShape shape = grid_for(count, device, detail::kItemsBlock);
  const Tensor partials = states_on<State>(device, std::max<std::int64_t>(shape.grid.x, 1));
  State* const states = static_cast<State*>(partials.raw());
  launch(name, device, shape, detail::reduce_items_kernel<State, Item, Join>, item, join, neutral, count, states);
  launch(name, device, {dim3(1), dim3(detail::kItemsBlock)}, detail::join_partials_kernel<State, Join, Finish>, join, finish,
         neutral, static_cast<int>(shape.grid.x), states);
}

}  // namespace tessera::cuda
