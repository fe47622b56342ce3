// Copies of permuted tensors, in the order in which memory has the source.
#pragma once

#include "core/strided_loop.h"

namespace tessera::cpu {

// Copies operand 0 of the loop, the source, to operand 1, the target: in tiles, where they are contiguous along two different
// dimensions; in rows, where they are along the same one and the target is larger than the caches. Large targets are written past
// the caches. For any other loop, and where one of the two dimensions is shorter than a vector, it copies nothing and returns
// false.
bool tiled_copy(const StridedLoop<2>& loop, const float* source, float* target);

}  // namespace tessera::cpu
