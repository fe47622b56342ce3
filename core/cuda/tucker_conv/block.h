// What the phases of a fused kernel run on: on a GPU the threads of a block, on the host a loop over them. A phase is a function
// of a thread and its state; between phases lies a barrier. So a test without a GPU walks the very code that a kernel runs. And
// how the threads copy rows of channels to shared memory while they compute.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "core/compute_type.h"
#include "core/cuda/tucker_conv/shapes.h"
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

// 16 bytes from global to shared memory, or zeros where `source` is null. On a GPU they arrive by the block's wait.
TESSERA_INLINE void copy_16_bytes(void* to, const void* source, const void* any_valid) {
#if TESSERA_ON_DEVICE
  copy_16_async(to, source != nullptr ? source : any_valid, source != nullptr ? 16 : 0);
#else
  static_cast<void>(any_valid);
  if (source != nullptr) std::memcpy(to, source, 16);
  else std::memset(to, 0, 16);
#endif
}

// Rows of channels that a block copies from global to shared memory.
template <class T>
struct StagedRows {
  T* to;  // shared memory, 16-byte aligned
  int pitch;  // of its rows, in elements
  int rows, columns;  // columns: a multiple of 16 bytes
  int begin, end;  // channels from `begin` on; zeros from `end` on
  bool vector;  // every row begins at a multiple of 16 bytes, and `end` is a whole number of them
  const T* any_valid;  // an address that may be read
};

// A thread's share of to[row * pitch + k] = source(row)[begin + k] for 0 <= k < columns, zeros where source(row) is null. With
// `vector`, 16 bytes at a time beside the arithmetic.
template <class T, class Source>
TESSERA_INLINE void load_rows(int thread, const StagedRows<T>& staged, const Source& source) {
  constexpr int kVector = 16 / static_cast<int>(sizeof(T));
  // Locals, not members: nvcc makes fewer instructions of these.
  T* const to = staged.to;
  const int pitch = staged.pitch, rows = staged.rows, columns = staged.columns, begin = staged.begin, end = staged.end;
  const bool vector = staged.vector;
  const T* const any_valid = staged.any_valid;
  const int chunks = columns / kVector;
  for (int item = thread; item < rows * chunks; item += kBlockThreads) {
    const int row = item / chunks;
    const int k = (item - row * chunks) * kVector;
    const T* from = source(row);
    T* const target = to + row * pitch + k;
    if (vector) {
      copy_16_bytes(target, from != nullptr && begin + k < end ? from + begin + k : nullptr, any_valid);
    } else {
      for (int e = 0; e < kVector; ++e) {
        target[e] = from != nullptr && begin + k + e < end ? from[begin + k + e] : narrow<T>(0.0F);
      }
    }
  }
}

}  // namespace tessera::cuda
