// What a pass (chain.h) is told. Plain numbers and addresses.
#pragma once

#include <cstdint>

#include "core/cuda/tucker_conv/block_shape.h"

namespace tessera::cuda {

// Weights are f32 with the channels that are summed over contiguous: in_factor [narrow_in, wide_in],
// core [narrow_out, kh, kw, narrow_in], out_factor [wide_out, narrow_out].
template <class T>
struct ChainArguments {
  ChainShape shape;
  const T* x = nullptr;
  const float* in_factor = nullptr;
  const float* core = nullptr;
  const float* out_factor = nullptr;
  const float* bias = nullptr;   // may be null
  const T* residual = nullptr;   // of y's shape; may be null
  T* y = nullptr;                // null: only the narrow images are wanted
  T* narrow_in = nullptr;        // null: not stored
  T* narrow_out = nullptr;       // likewise
  bool relu = false;
  bool vector_x = false, vector_in = false, vector_core = false, vector_out = false;  // as load_rows() has it
};

}  // namespace tessera::cuda
