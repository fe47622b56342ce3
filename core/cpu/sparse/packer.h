// Panels of what a window reads: [taps * channels][pitch], positions side by side.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cpu/sparse/problem.h"
#include "core/cpu/sparse/window.h"

namespace tessera::cpu::sparse {

// An object is for one thread. Where the window slides, rows of the image are transposed once and each tap copies its pixels of
// them; elsewhere every tap transposes its own. Positions are cheapest in ascending order.
class Packer {
 public:
  Packer(const Kernels& kernels, const Window& window, const float* image, std::int64_t pitch);

  // `count` positions from `first` on, zeros behind them up to a whole vector. May write up to kSpill floats behind the panel.
  void pack(std::int64_t first, std::int64_t count, float* to);

 private:
  // Positions of one row of the result.
  struct Run {
    std::int64_t image, y, x, length;
  };

  void pack_pixels(std::int64_t first, std::int64_t count, float* to);
  void pack_sliding(std::int64_t first, std::int64_t count, float* to);
  std::vector<Run> runs(std::int64_t first, std::int64_t count) const;
  const float* transposed_row(std::int64_t image, std::int64_t row);  // [channels][row_pitch_]

  const Kernels& kernels_;
  Window window_;
  const float* image_;
  std::int64_t pitch_;
  std::vector<float> zeros_;
  std::vector<const float*> pixels_;
  // Transposed rows: padded on the left, pixels that lie `step` apart side by side.
  std::int64_t left_ = 0, phase_length_ = 0, row_pitch_ = 0;
  std::vector<float> ring_, zero_row_;
  std::vector<std::int64_t> held_;  // the row that a slot of the ring holds, counted over all images; -1: none
};

}  // namespace tessera::cpu::sparse
