// Permuted copies as a library of transpositions makes them, for the rival of contractions: in tiles, on all threads, and past
// the caches where a copy is large.
#pragma once

#include "core/tensor.h"

namespace tessera::bench {

// Writes the elements of a view, in the order in which it names them, to `copy`, which is contiguous and has its shape. f32 on
// the CPU. Neighbouring axes that lie alike are one. Where the last axis is contiguous, its rows are copied; where another one
// is, tiles of the two are transposed in registers. Without a contiguous axis it is Tensor::copy_from().
void permute_into(const Tensor& view, const Tensor& copy);

}  // namespace tessera::bench
