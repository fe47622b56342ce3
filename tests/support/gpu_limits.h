// GPUs by their data sheets, for planners that need none.
#pragma once

#include "core/cuda/runtime/limits.h"

namespace tessera {

// An H100 SXM5.
inline constexpr cuda::Limits kH100{.processors = 132,
                                    .capability = 90,
                                    .threads_per_processor = 2048,
                                    .shared_per_block = 227 << 10,
                                    .shared_per_processor = 228 << 10,
                                    .l2 = 50 << 20,
                                    .clock = 1'980'000,
                                    .memory_clock = 2'619'000,
                                    .memory_bits = 5120};

// An A100 SXM4 of 40 GB.
inline constexpr cuda::Limits kA100{.processors = 108,
                                    .capability = 80,
                                    .threads_per_processor = 2048,
                                    .shared_per_block = 163 << 10,
                                    .shared_per_processor = 164 << 10,
                                    .l2 = 40 << 20,
                                    .clock = 1'410'000,
                                    .memory_clock = 1'215'000,
                                    .memory_bits = 5120};

}  // namespace tessera
