#include "core/conv2d_geometry.h"

#include "core/support/error.h"

namespace tessera {

std::string describe(const Conv2dGeometry& g) {
  const auto& [stride, padding, dilation, groups] = g.options;
  return str('n', g.n, " h", g.h, " w", g.w, " c", g.in, '>', g.out, " k", g.kh, 'x', g.kw, " s", stride.h, 'x', stride.w, " p",
             padding.h, 'x', padding.w, " d", dilation.h, 'x', dilation.w, " g", groups);
}

}  // namespace tessera
