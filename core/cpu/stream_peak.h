// What the memory can do for loops that read and write arrays and hardly compute: the yardstick for ops that compute little.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::cpu {

// A way of multiplying arrays of `count` floats by a constant, on `threads` OpenMP threads; `count` is a multiple of 8, both
// arrays are aligned to 32 bytes.
struct StreamPass {
  const char* name;
  void (*run)(float* x, float* y, std::int64_t count, int threads);
  int walks;  // over one array, that the results need: reads and writes
  bool in_place = false;

  double bytes(std::int64_t count) const { return walks * static_cast<double>(count) * sizeof(float); }
};

// "scale": y = a x. Its stores read a line of y before they change it, where the processor does not see that all of the line
// will be written: a third walk, which is not counted.
// "scale past the caches": the same with stores that do not read, but may be slower for another reason.
// "scale in place": x = a x, then y = a y, in which no walk is hidden. It walks over both because an array that is about twice
// the size of a cache is in part still there when the next pass comes.
// The fastest of them differs between machines.
std::span<const StreamPass> stream_passes();

// GB/s of the fastest of these passes: the best of several tries. Both arrays together are four times the last cache, at least
// 128 MiB, at most 2 GiB or an eighth of the memory; they are given back.
double stream_peak_gbytes(int threads);

}  // namespace tessera::cpu
