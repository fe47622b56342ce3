#include "core/cpu/sparse/window.h"

namespace tessera::cpu::sparse {
namespace {

struct Sizes {
  std::int64_t in, out, taps, stride, padding, dilation;
};

Window::Axis forward_axis(const Sizes& s) { return {s.out, s.in, s.taps, s.stride, -s.padding, s.dilation, 1}; }
Window::Axis backward_axis(const Sizes& s) { return {s.in, s.out, s.taps, 1, s.padding, -s.dilation, s.stride}; }

}  // namespace

Window::Window(const Conv2dGeometry& g, Conv2dPass pass) {
  const auto& [stride, padding, dilation, groups] = g.options;
  const Sizes rows{g.h, g.oh, g.kh, stride.h, padding.h, dilation.h};
  const Sizes columns{g.w, g.ow, g.kw, stride.w, padding.w, dilation.w};
  const bool backwards = pass == Conv2dPass::backward_input;
  images = g.n;
  channels = backwards ? g.out : g.in;
  y = backwards ? backward_axis(rows) : forward_axis(rows);
  x = backwards ? backward_axis(columns) : forward_axis(columns);
}

bool Window::is_pointwise() const {
  const auto plain = [](const Axis& axis) { return axis.taps == 1 && axis.step == 1 && axis.first == 0 && axis.divisor == 1; };
  return plain(y) && plain(x);
}

}  // namespace tessera::cpu::sparse
