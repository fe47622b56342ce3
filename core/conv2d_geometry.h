// Sizes of one convolution, as the algorithms of both devices take them.
#pragma once

#include <cstdint>
#include <string>

#include "core/support/extent.h"
#include "core/tensor.h"

namespace tessera {

struct Conv2dOptions {
  Extent stride{1, 1};
  Extent padding{0, 0};
  Extent dilation{1, 1};
  std::int64_t groups = 1;
};

enum class Conv2dPass : std::int64_t { forward, backward_input, backward_weight };

constexpr const char* name_of(Conv2dPass pass) noexcept {
  return pass == Conv2dPass::forward ? "forward" : pass == Conv2dPass::backward_input ? "backward_input" : "backward_weight";
}

// in and out count all groups.
struct Conv2dGeometry {
  std::int64_t n, h, w, in;
  std::int64_t out, kh, kw;
  std::int64_t oh, ow;
  Conv2dOptions options;

  std::int64_t group_in() const { return in / options.groups; }
  std::int64_t group_out() const { return out / options.groups; }
  std::int64_t first_channel(std::int64_t o) const { return o / group_out() * group_in(); }
  std::int64_t y_at(std::int64_t image, std::int64_t oy, std::int64_t ox) const { return ((image * oh + oy) * ow + ox) * out; }
  std::int64_t weight_at(std::int64_t o, std::int64_t ky, std::int64_t kx) const {
    return ((o * kh + ky) * kw + kx) * group_in();
  }
  double flops() const { return 2.0 * static_cast<double>(n * oh * ow * out) * static_cast<double>(kh * kw * group_in()); }
  // A 1x1 convolution that visits every pixel once is a matrix product over pixels.
  bool is_pointwise() const {
    return kh == 1 && kw == 1 && options.stride == Extent{1, 1} && options.padding == Extent{0, 0} && options.groups == 1;
  }
  // One whose windows lie side by side and cover the images is a matrix product over windows.
  bool is_of_patches() const {
    return kh * kw > 1 && options.stride == Extent{kh, kw} && options.padding == Extent{0, 0} &&
           options.dilation == Extent{1, 1} && options.groups == 1 && h % kh == 0 && w % kw == 0;
  }

  // Calls tap(ky, kx, offset of x[image, iy, ix, 0]) for the taps of output (oy, ox) that fall inside the image.
  template <class Tap>
  void for_each_tap(std::int64_t image, std::int64_t oy, std::int64_t ox, Tap&& tap) const {
    for (std::int64_t ky = 0; ky < kh; ++ky) {
      const std::int64_t iy = oy * options.stride.h - options.padding.h + ky * options.dilation.h;
      if (iy < 0 || iy >= h) continue;
      for (std::int64_t kx = 0; kx < kw; ++kx) {
        const std::int64_t ix = ox * options.stride.w - options.padding.w + kx * options.dilation.w;
        if (ix >= 0 && ix < w) tap(ky, kx, ((image * h + iy) * w + ix) * in);
      }
    }
  }
};

// x of the forward pass, or its gradient; likewise weight and y.
inline Conv2dGeometry geometry_of(const Tensor& x, const Tensor& weight, const Tensor& y, const Conv2dOptions& options) {
  return {x.dim(0), x.dim(1), x.dim(2), x.dim(3), weight.dim(0), weight.dim(1), weight.dim(2), y.dim(1), y.dim(2), options};
}

// "n128 h32 w32 c16>16 k3x3 s1x1 p1x1 d1x1 g1", for the keys of decisions.
std::string describe(const Conv2dGeometry& geometry);

}  // namespace tessera
