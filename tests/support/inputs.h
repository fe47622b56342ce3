// Random inputs for the op table, in the memory layouts that kernels must survive.
#pragma once

#include <vector>

#include "tests/support/op_cases.h"

namespace tessera::testing {

// One tensor per input of the case: floating ones of `dtype` (values exact in f32, so that f32 and f64 see the same numbers),
// index inputs i64. The same seed gives the same values. For bf16 all values, those of parameters too, are rounded to it.
std::vector<Tensor> make_inputs(const OpCase& op_case, DType dtype, std::uint64_t seed = 1);

// The same elements behind reversed strides, with a gap after every row; the gaps hold NaN (or -1). The first is aligned to its own
// size only.
Tensor scattered(const Tensor& x);

// Fills free blocks of the caching allocator with one byte, so that reading memory before writing it shows: 0xff makes NaN.
void poison_free_memory(unsigned char byte);

}  // namespace tessera::testing
