// What the memory can do for loops that read one array and write another: the yardstick for ops that compute little.
#pragma once

#include <cstdint>

namespace tessera::cpu {

// y[i] = a * x[i] on `threads` OpenMP threads; `count` is a multiple of 8, both arrays are aligned to 32 bytes. Ordinary stores
// read a line of y before they change it; those past the caches do not, and the faster of the two differs between machines.
void stream_scale(const float* x, float* y, std::int64_t count, int threads);
void stream_scale_past_caches(const float* x, float* y, std::int64_t count, int threads);

// GB/s of the faster of these two, one read and one write counted: the best of several passes. Both arrays together are four
// times the last cache, at least 128 MiB, at most 2 GiB or an eighth of the memory; they are given back.
double stream_peak_gbytes(int threads);

}  // namespace tessera::cpu
