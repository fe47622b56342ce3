// What the memory can do for loops that read one array and write another: the yardstick for ops that compute little.
#pragma once

namespace tessera::cpu {

// GB/s of y[i] = a * x[i] on `threads` OpenMP threads, one read and one write counted: the best of several passes. Both arrays
// together are four times the last cache, at least 128 MiB, at most 2 GiB or an eighth of the memory; they are given back.
double stream_peak_gbytes(int threads);

}  // namespace tessera::cpu
