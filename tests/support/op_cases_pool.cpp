// Rows for pooling.
#include <algorithm>

#include "core/ops/pool2d.h"
#include "tests/support/op_cases.h"

namespace tessera::testing {
namespace {

using Inputs = std::span<const Tensor>;
using std::int64_t;

// Calls visit(y offset, x offset) for every pixel of every window, windows and pixels in row-major order.
template <class Visit>
void for_each_pooled(const Tensor& x, const Tensor& y, const Pool2dOptions& o, Visit&& visit) {
  for (int64_t position = 0; position < y.numel(); ++position) {
    const int64_t c = position % y.dim(3);
    const int64_t ox = position / y.dim(3) % y.dim(2);
    const int64_t oy = position / y.dim(3) / y.dim(2) % y.dim(1);
    const int64_t n = position / y.dim(3) / y.dim(2) / y.dim(1);
    for (int64_t ky = 0; ky < o.kernel.h; ++ky) {
      for (int64_t kx = 0; kx < o.kernel.w; ++kx) {
        const int64_t iy = oy * o.stride.h - o.padding.h + ky;
        const int64_t ix = ox * o.stride.w - o.padding.w + kx;
        if (iy < 0 || iy >= x.dim(1) || ix < 0 || ix >= x.dim(2)) continue;
        visit(position, ((n * x.dim(1) + iy) * x.dim(2) + ix) * x.dim(3) + c);
      }
    }
  }
}

Tensor empty_pooled(const Tensor& x, const Pool2dOptions& o, double value) {
  return Tensor::full({x.dim(0), (x.dim(1) + 2 * o.padding.h - o.kernel.h) / o.stride.h + 1,
                       (x.dim(2) + 2 * o.padding.w - o.kernel.w) / o.stride.w + 1, x.dim(3)},
                      value, DType::f64);
}

Tensor max_pool2d_reference(const Tensor& x, const Pool2dOptions& o) {
  const Tensor y = empty_pooled(x, o, -1e300);
  for_each_pooled(
      x, y, o, [&](int64_t to, int64_t from) { y.data<double>()[to] = std::max(y.data<double>()[to], x.data<double>()[from]); });
  return y;
}

Tensor avg_pool2d_reference(const Tensor& x, const Pool2dOptions& o) {
  const Tensor y = empty_pooled(x, o, 0);
  std::vector<double> count(static_cast<std::size_t>(y.numel()));
  for_each_pooled(x, y, o, [&](int64_t to, int64_t from) {
    y.data<double>()[to] += x.data<double>()[from];
    count[static_cast<std::size_t>(to)] += 1;
  });
  for (std::size_t i = 0; i < count.size(); ++i) y.data<double>()[i] /= count[i];
  return y;
}

void add_pools(std::vector<OpCase>& cases, const std::string& name, const Shape& x, const Pool2dOptions& o = {}) {
  cases.push_back(op_case(
      "max_pool2d/" + name, {x}, [o](std::span<const Var> in) { return max_pool2d(in[0], o); },
      [o](Inputs in) { return max_pool2d_reference(in[0], o); }));
  cases.push_back(op_case(
      "avg_pool2d/" + name, {x}, [o](std::span<const Var> in) { return avg_pool2d(in[0], o); },
      [o](Inputs in) { return avg_pool2d_reference(in[0], o); }));
}

void add_global_pool(std::vector<OpCase>& cases, const std::string& name, const Shape& x) {
  cases.push_back(op_case(
      "global_avg_pool/" + name, {x}, [](std::span<const Var> in) { return global_avg_pool(in[0]); },
      [](Inputs in) {
        const Pool2dOptions whole{{in[0].dim(1), in[0].dim(2)}, {1, 1}, {0, 0}};
        return avg_pool2d_reference(in[0], whole).reshape({in[0].dim(0), in[0].dim(3)});
      }));
}

}  // namespace

std::vector<OpCase> pool_op_cases() {
  std::vector<OpCase> cases;
  add_pools(cases, "plain_c7", {2, 6, 4, 7});
  add_pools(cases, "kernel3_stride2_pad1_c33", {1, 7, 6, 33}, {{3, 3}, {2, 2}, {1, 1}});
  add_pools(cases, "kernel_2x3_stride_1x2", {3, 5, 8, 1}, {{2, 3}, {1, 2}, {0, 1}});
  add_pools(cases, "stride_above_kernel", {1, 7, 7, 3}, {{2, 2}, {3, 3}, {0, 0}});
  add_pools(cases, "batch0", {0, 4, 4, 3});
  add_global_pool(cases, "c33", {3, 5, 7, 33});
  add_global_pool(cases, "one_pixel", {2, 1, 1, 5});
  add_global_pool(cases, "batch0", {0, 3, 3, 5});
  return cases;
}

}  // namespace tessera::testing
