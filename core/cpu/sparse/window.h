// Which rows of channels a convolution reads at each position of its result.
#pragma once

#include <cstdint>

#include "core/conv2d_geometry.h"

namespace tessera::cpu::sparse {

// Of a convolution without groups: positions are the pixels of y and rows those of x, or the other way round for the gradient of
// the input. A linear layer is one of a single pixel.
class Window {
 public:
  Window(const Conv2dGeometry& geometry, Conv2dPass pass) : g_(geometry), pass_(pass) {}

  std::int64_t positions() const { return backwards() ? g_.n * g_.h * g_.w : g_.n * g_.oh * g_.ow; }
  std::int64_t taps() const { return g_.kh * g_.kw; }
  std::int64_t channels() const { return backwards() ? g_.out : g_.in; }  // of a row

  // rows[t * count + i]: what tap t reads at position first + i, of `image`, or `zeros` outside of it.
  void rows(std::int64_t first, std::int64_t count, const float* image, const float* zeros, const float** rows) const;

 private:
  bool backwards() const { return pass_ == Conv2dPass::backward_input; }
  // The index of the row that (ky, kx) reads at (y, x) of the image; -1: none.
  std::int64_t row_at(std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t ky, std::int64_t kx) const;

  Conv2dGeometry g_;
  Conv2dPass pass_;
};

}  // namespace tessera::cpu::sparse
