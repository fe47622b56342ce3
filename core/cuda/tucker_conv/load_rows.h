// Copies from global to shared memory, 16 bytes at a time beside the arithmetic where alignment allows it.
#pragma once

#include <cstring>

#include "core/compute_type.h"
#include "core/cuda/tucker_conv/block.h"

namespace tessera::cuda {

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

// Rows of channels on their way to shared memory: to[row * pitch + k] = source(row)[begin + k] for 0 <= k < columns, zero from
// channel `end` on and where source(row) is null. `columns` is a multiple of 16 bytes; `vector`: every row begins at a multiple
// of 16 bytes and `end` is a whole number of them.
template <class T, class Source>
TESSERA_INLINE void load_rows(int thread, int threads, T* to, int pitch, int rows, int columns, int begin, int end, bool vector,
                              const T* any_valid, const Source& source) {
  constexpr int kVector = 16 / static_cast<int>(sizeof(T));
  const int chunks = columns / kVector;
  for (int item = thread; item < rows * chunks; item += threads) {
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
