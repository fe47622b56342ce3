// Convolutions whose lanes are strips of images: the image is transposed once, and every tap reads it where it lies.
#pragma once

#include <cstdint>
#include <optional>

#include "core/cpu/sparse/plan.h"
#include "core/cpu/sparse/window.h"

namespace tessera::cpu::sparse {

// The results of each image are cut into strips of `height` x `width` pixels. kStripLanes strips lie side by side, each with the
// sources that its taps reach: [cell_rows][cell_columns][channels][kStripLanes].
struct Strips {
  std::int64_t height, width;
  std::int64_t down, across;  // strips of an image
  std::int64_t cell_rows, cell_columns;

  std::int64_t cell_floats(const Window& window) const;  // from one cell to the next: at least channels * kStripLanes
  std::int64_t groups(const Window& window) const;  // of kStripLanes strips
};

Strips strips_of(const Window& window, std::int64_t height, std::int64_t width);  // the window slides (window.h)

// The strips that cost least, by counts of the vectors moved and multiplied; none where panels of positions (packer.h) cost less,
// as with few or small images and many channels.
std::optional<Strips> best_strips(const Window& window, const Plan& plan);

// As multiply() (product.h), to the same bytes.
void multiply_strips(const Kernels& kernels, const Plan& plan, const float* weights, const Window& window, const Strips& strips,
                     const float* x, const float* bias, bool relu, float* y);

}  // namespace tessera::cpu::sparse
