// Runs every tile of the core convolution's kernels on a GPU, whatever the planner prefers, against plain loops in double: with
// and without splits, on operands that are aligned to four floats and on ones that are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/cpu/reference/conv2d.h"
#include "core/cuda/core_conv/core_conv.h"
#include "tests/core/ops/conv2d_cases.h"
#include "tests/support/gpu.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

using cuda::CoreConvPlan;

Conv2dGeometry geometry(const Shape& x, std::int64_t out, Extent kernel, std::int64_t stride, Extent padding) {
  Conv2dOptions options;
  options.stride = {stride, stride};
  options.padding = padding;
  const Shape y = conv2d_output_shape(x, {out, kernel.h, kernel.w, x[3]}, options);
  return {x[0], x[1], x[2], x[3], out, kernel.h, kernel.w, y[1], y[2], options};
}

// Tiny, for simulated GPUs. Each kind of kernel gets channels with and without copies of four floats, channels of several stages
// and of several blocks, images wider than every tile and images higher than every tile.
const std::vector<Conv2dGeometry>& geometries() {
  static const std::vector<Conv2dGeometry> all{
      geometry({1, 9, 7, 36}, 40, {3, 3}, 1, {1, 1}),  geometry({2, 5, 4, 9}, 66, {3, 3}, 1, {0, 2}),
      geometry({1, 19, 20, 5}, 6, {3, 3}, 1, {0, 0}),  geometry({1, 4, 3, 66}, 37, {3, 3}, 1, {1, 1}),
      geometry({1, 9, 7, 20}, 36, {3, 3}, 2, {1, 1}),  geometry({2, 20, 33, 7}, 5, {3, 3}, 2, {0, 0}),
      geometry({2, 5, 16, 20}, 17, {1, 3}, 1, {0, 1}), geometry({1, 19, 5, 18}, 20, {3, 1}, 1, {0, 0}),
      geometry({1, 8, 7, 9}, 33, {2, 2}, 1, {1, 0}),   geometry({1, 9, 8, 20}, 18, {3, 1}, 2, {1, 0}),
      geometry({2, 18, 31, 8}, 6, {2, 2}, 2, {0, 1}),  geometry({1, 4, 9, 19}, 36, {1, 3}, 2, {0, 0}),
  };
  return all;
}

std::string title_of(Conv2dPass pass, const Conv2dGeometry& g) {
  return str(name_of(pass), ", ", g.n, "x", g.h, "x", g.w, "x", g.in, " -> ", g.out, ", kernel ", g.kh, "x", g.kw, ", stride ",
             g.options.stride, ", padding ", g.options.padding);
}

// Elements on a GPU with NaNs around them. They begin at an address aligned to four floats, or `shift` elements after one.
class Framed {
 public:
  Framed(const Tensor& values, std::int64_t shift, Device gpu) : begin_(kMargin + shift), end_(begin_ + values.numel()) {
    buffer_ = Tensor::full({end_ + kMargin}, std::numeric_limits<double>::quiet_NaN(), DType::f32, gpu);
    tensor_ = buffer_.slice(0, begin_, end_);
    tensor_.copy_from(values.reshape({values.numel()}).to(gpu));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor_.raw()) % 16, static_cast<std::size_t>(shift) * sizeof(float));
  }

  const Tensor& tensor() const { return tensor_; }

  std::vector<double> elements() const {
    const std::vector<float> all = buffer_.to_vector<float>();
    return {all.begin() + begin_, all.begin() + end_};
  }
  bool frame_intact() const {
    const std::vector<float> all = buffer_.to_vector<float>();
    const auto is_nan = [](float value) { return std::isnan(value); };
    return std::all_of(all.begin(), all.begin() + begin_, is_nan) && std::all_of(all.begin() + end_, all.end(), is_nan);
  }

 private:
  static constexpr std::int64_t kMargin = 64;
  std::int64_t begin_, end_;
  Tensor buffer_, tensor_;
};

// The operands of one pass and the plain loops' result. A forward pass of one image has a bias.
struct Case {
  Case(Conv2dPass pass, const Conv2dGeometry& g) {
    const Shape x{g.n, g.h, g.w, g.in}, y{g.n, g.oh, g.ow, g.out}, weight{g.out, g.kh, g.kw, g.in};
    a = random_values(pass == Conv2dPass::backward_input ? y : x, 1);
    b = random_values(pass == Conv2dPass::backward_weight ? y : weight, 2);
    const Tensor exact_a = a.to(DType::f64), exact_b = b.to(DType::f64);
    const double *const left = exact_a.data<double>(), *const right = exact_b.data<double>();
    if (pass == Conv2dPass::forward) {
      if (g.n == 1) bias = random_values({g.out}, 3);
      const Tensor exact_bias = bias.defined() ? bias.to(DType::f64) : Tensor();
      const double* const shift = bias.defined() ? exact_bias.data<double>() : nullptr;
      expected.resize(static_cast<std::size_t>(y.numel()));
      cpu::reference::conv2d_forward<double>(g, left, right, shift, expected.data());
    } else if (pass == Conv2dPass::backward_input) {
      expected.resize(static_cast<std::size_t>(x.numel()));
      cpu::reference::conv2d_backward_input<double>(g, left, right, expected.data());
    } else {
      expected.resize(static_cast<std::size_t>(weight.numel()));
      cpu::reference::conv2d_backward_weight<double>(g, left, right, expected.data(), nullptr);
    }
  }

  Tensor a, b, bias;
  std::vector<double> expected;
};

// How many elements after an aligned address each operand begins.
struct Shifts {
  std::int64_t a, b;
};

// Shifting only one operand makes a difference only if the other one is copied by four.
std::vector<Shifts> shifts_of(const Conv2dGeometry& g) {
  if (g.in % 4 != 0) return {{0, 0}, {1, 1}};
  return {{0, 0}, {1, 1}, {0, 1}, {1, 0}};
}

void run_and_compare(const Case& c, const std::vector<CoreConvPlan>& plans, const Shifts& shifts, Device gpu) {
  const Framed a(c.a, shifts.a, gpu), b(c.b, shifts.b, gpu);
  const Tensor bias = c.bias.defined() ? Framed(c.bias, shifts.b, gpu).tensor() : Tensor();
  const Tensor unwritten = Tensor::full({static_cast<std::int64_t>(c.expected.size())}, std::numeric_limits<double>::quiet_NaN());
  for (const CoreConvPlan& plan : plans) {
    const Framed result(unwritten, shifts.a, gpu);
    cuda::run_core_conv(plan, a.tensor(), b.tensor(), bias, result.tensor());
    EXPECT_LE(relative_error(result.elements(), c.expected), 1e-5) << describe(plan) << ", shifts " << shifts.a << shifts.b;
    EXPECT_TRUE(result.frame_intact()) << describe(plan) << ", shifts " << shifts.a << shifts.b;
  }
}

// For each tile, the plan without splits and the one with the most splits up to three, instead of a split for each stage.
std::vector<CoreConvPlan> whole_and_split(const std::vector<CoreConvPlan>& candidates) {
  constexpr int kMostSplits = 3;
  std::map<std::pair<int, bool>, CoreConvPlan> chosen;
  for (const CoreConvPlan& plan : candidates) {
    if (plan.splits() > kMostSplits) continue;
    CoreConvPlan& known = chosen.try_emplace({plan.tile, plan.splits() > 1}, plan).first->second;
    if (plan.splits() > known.splits()) known = plan;
  }
  std::vector<CoreConvPlan> plans;
  for (const auto& [key, plan] : chosen) plans.push_back(plan);
  return plans;
}

// A tile of one of the three lists: whether all taps are present, the convolution's stride, its index; and whether it was split.
using Ran = std::set<std::tuple<bool, std::int64_t, int, bool>>;

Ran run_all(Conv2dPass pass, Device gpu) {
  Ran ran;
  for (const Conv2dGeometry& g : geometries()) {
    SCOPED_TRACE(title_of(pass, g));
    std::string reason;
    const auto plans = whole_and_split(cuda::core_conv_candidates(pass, g, DType::f32, kSmallestGpu, &reason));
    EXPECT_FALSE(plans.empty()) << reason;
    const Case c(pass, g);
    for (const Shifts& shifts : shifts_of(g)) run_and_compare(c, plans, shifts, gpu);
    for (const CoreConvPlan& plan : plans) ran.emplace(plan.full, g.options.stride.h, plan.tile, plan.splits() > 1);
  }
  return ran;
}

void add_tiles(Ran& all, bool full, std::int64_t stride, std::size_t tiles) {
  for (int tile = 0; tile < static_cast<int>(tiles); ++tile) {
    all.emplace(full, stride, tile, false);
    all.emplace(full, stride, tile, true);
  }
}

class CudaCoreConv : public GpuTest {};

TEST_F(CudaCoreConv, EveryTileOfTheForward) {
  Ran all;
  add_tiles(all, true, 1, cuda::core_conv::kFullTiles.size());
  add_tiles(all, true, 2, cuda::core_conv::kOtherTiles.size());
  for (const int stride : {1, 2}) add_tiles(all, false, stride, cuda::core_conv::kOtherTiles.size());
  EXPECT_EQ(run_all(Conv2dPass::forward, gpu()), all);
}

// With a stride of two, each parity of pixels has fewer than 3x3 taps.
TEST_F(CudaCoreConv, EveryTileOfTheInputGradient) {
  Ran all;
  add_tiles(all, true, 1, cuda::core_conv::kFullTiles.size());
  for (const int stride : {1, 2}) add_tiles(all, false, stride, cuda::core_conv::kOtherTiles.size());
  EXPECT_EQ(run_all(Conv2dPass::backward_input, gpu()), all);
}

TEST_F(CudaCoreConv, EveryTileOfTheWeightGradient) {
  Ran all;
  for (const int stride : {1, 2}) add_tiles(all, true, stride, cuda::core_conv::kWeightTiles.size());
  EXPECT_EQ(run_all(Conv2dPass::backward_weight, gpu()), all);
}

}  // namespace
}  // namespace tessera::testing
