// What the phases of a fused kernel run on: on a GPU the threads of a block, on the host a loop over them. A phase is a function
// of a thread and its state; between phases lies a barrier. So a test without a GPU walks the very code that a kernel runs.
#pragma once

#include <cstddef>
#include <vector>

#include "core/support/host_device.h"
#if TESSERA_KERNELS
#include "core/cuda/kernel/instructions.cuh"
#endif

namespace tessera::cuda {

#if TESSERA_KERNELS
// The block that a kernel runs as; a thread holds its own state, in registers.
template <class State>
class DeviceBlock {
 public:
  template <class Phase>
  TESSERA_INLINE void each(const Phase& phase) {
#if TESSERA_ON_DEVICE
    phase(static_cast<int>(threadIdx.x), state_);
#endif
  }
  TESSERA_INLINE void commit() {
#if TESSERA_ON_DEVICE
    commit_copies();
#endif
  }
  // Until all but the newest committed copies have arrived, those of other threads too.
  TESSERA_INLINE void wait_for_older() {
#if TESSERA_ON_DEVICE
    wait_for_groups<1>();
    __syncthreads();
#endif
  }
  TESSERA_INLINE void sync() {
#if TESSERA_ON_DEVICE
    __syncthreads();
#endif
  }

 private:
  State state_;
};
#endif

// The same on the host: one thread after the other.
template <class State>
class HostBlock {
 public:
  explicit HostBlock(int threads) : states_(static_cast<std::size_t>(threads)) {}
  template <class Phase>
  void each(const Phase& phase) {
    for (std::size_t i = 0; i < states_.size(); ++i) phase(static_cast<int>(i), states_[i]);
  }
  void commit() {}
  void wait_for_older() {}
  void sync() {}

 private:
  std::vector<State> states_;
};

// Runs load(thread, slice, buffer) and multiply(thread, state, slice, buffer) for every slice, loading one slice ahead.
template <class Block, class Load, class Multiply>
TESSERA_INLINE void pipelined(Block& block, int slices, const Load& load, const Multiply& multiply) {
  if (slices > 0) block.each([&](int thread, auto&) { load(thread, 0, 0); });
  block.commit();
  for (int slice = 0; slice < slices; ++slice) {
    if (slice + 1 < slices) block.each([&](int thread, auto&) { load(thread, slice + 1, (slice + 1) & 1); });
    block.commit();
    block.wait_for_older();
    block.each([&](int thread, auto& state) { multiply(thread, state, slice, slice & 1); });
    block.sync();
  }
}

}  // namespace tessera::cuda
