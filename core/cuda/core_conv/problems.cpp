#include "core/cuda/core_conv/problems.h"

#include <algorithm>
#include <limits>

#include "core/support/error.h"
#include "core/support/rounding.h"

namespace tessera::cuda::core_conv {
namespace {

constexpr std::int64_t kMostChannels = 256;

int narrow_size(std::int64_t size) { return static_cast<int>(size); }

ConvImages images_of(const Conv2dGeometry& g) {
  return {narrow_size(g.n),  narrow_size(g.h),  narrow_size(g.w), narrow_size(g.in),
          narrow_size(g.oh), narrow_size(g.ow), narrow_size(g.out)};
}

template <class Problem>
Problem between(const ConvImages& images) {
  Problem problem{};
  static_cast<ConvImages&>(problem) = images;
  return problem;
}

Axis forward_axis(std::int64_t count, std::int64_t padding, std::int64_t taps) {
  return {narrow_size(count), 0, narrow_size(-padding), narrow_size(taps), 0, 1};
}

// Row k of the kernel connects pixel i of the image with pixel (i + padding - k) / stride of the result, if that is an integer.
// All i with the same remainder by the stride use every stride-th k. Ascending pixels of the result use descending k.
Axis gradient_axis(int remainder, int size, int padding, int taps, int stride) {
  Axis axis;
  axis.offset = remainder;
  axis.count = std::max(0, ceil_div(size - remainder, stride));
  axis.weight_step = -stride;
  for (int k = taps - 1; k >= 0; --k) {
    const int distance = remainder + padding - k;
    if (distance % stride != 0) continue;
    if (axis.taps++ > 0) continue;
    axis.origin = distance / stride;
    axis.weight_first = k;
  }
  return axis;
}

GatherProblem forward_problem(const Conv2dGeometry& g) {
  GatherProblem problem = between<GatherProblem>(images_of(g));
  problem.stride = narrow_size(g.options.stride.h);
  problem.step = 1;
  problem.rows[0] = forward_axis(g.oh, g.options.padding.h, g.kh);
  problem.columns[0] = forward_axis(g.ow, g.options.padding.w, g.kw);
  problem.weight_out = narrow_size(g.kh * g.kw * g.in);
  problem.weight_channel = 1;
  return problem;
}

GatherProblem input_gradient_problem(const Conv2dGeometry& g) {
  const auto [images, rows, columns, channels, out_rows, out_columns, outs] = images_of(g);
  GatherProblem problem = between<GatherProblem>({images, out_rows, out_columns, outs, rows, columns, channels});
  problem.stride = 1;
  problem.step = narrow_size(g.options.stride.h);
  for (int r = 0; r < problem.step; ++r) {
    problem.rows[r] = gradient_axis(r, problem.out_rows, narrow_size(g.options.padding.h), narrow_size(g.kh), problem.step);
    problem.columns[r] = gradient_axis(r, problem.out_columns, narrow_size(g.options.padding.w), narrow_size(g.kw), problem.step);
  }
  problem.weight_out = 1;
  problem.weight_channel = narrow_size(g.kh * g.kw * g.in);
  return problem;
}

}  // namespace

std::string refusal(const Conv2dGeometry& g, DType dtype) {
  const Conv2dOptions& o = g.options;
  if (dtype != DType::f32) return str("the dtype is ", name_of(dtype), "; the kernels of core convolutions take f32");
  if (o.groups != 1) return str("there are ", o.groups, " groups; the kernels of core convolutions take 1");
  if (o.dilation.h != 1 || o.dilation.w != 1) return "the kernel is dilated; the kernels of core convolutions take dilation 1";
  if (o.stride.h != o.stride.w || o.stride.h < 1 || o.stride.h > 2)
    return str("the stride is ", o.stride.h, "x", o.stride.w, "; the kernels of core convolutions take 1x1 and 2x2");
  if (g.kh > kTaps || g.kw > kTaps)
    return str("the kernel is ", g.kh, "x", g.kw, "; the kernels of core convolutions take at most 3x3");
  if (g.kh * g.kw <= 1) return "the kernel is 1x1; that is a matrix product, which the library does";
  if (g.in > kMostChannels || g.out > kMostChannels)
    return str("there are ", g.in, " and ", g.out, " channels; the kernels of core convolutions take at most ", kMostChannels);
  if (g.n * g.oh * g.ow * g.out < 1 || g.n * g.h * g.w * g.in < 1) return "there is nothing to compute: an operand is empty";
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kLeast = 4;  // blocks are counted in 32 bits too: at most one for each pixel and parity
  if (g.n * g.h * g.w * std::max(g.in, kLeast) > kMost || g.n * g.oh * g.ow * std::max(g.out, kLeast) > kMost)
    return "an operand has more elements than 32 bits count; the kernels of core convolutions take fewer";
  return {};
}

GatherProblem gather_problem(Conv2dPass pass, const Conv2dGeometry& g) {
  GatherProblem problem = pass == Conv2dPass::forward ? forward_problem(g) : input_gradient_problem(g);
  problem.weight_tap = narrow_size(g.in);
  problem.kernel_columns = narrow_size(g.kw);
  problem.quads_of_input = problem.channels % 4 == 0;
  problem.quads_of_weight = problem.weight_channel == 1 && problem.channels % 4 == 0;
  return problem;
}

WeightProblem weight_problem(const Conv2dGeometry& g) {
  WeightProblem problem = between<WeightProblem>(images_of(g));
  problem.stride = narrow_size(g.options.stride.h);
  problem.kernel_rows = narrow_size(g.kh);
  problem.kernel_columns = narrow_size(g.kw);
  problem.origin_y = narrow_size(-g.options.padding.h);
  problem.origin_x = narrow_size(-g.options.padding.w);
  problem.quads_of_input = problem.channels % 4 == 0;
  problem.quads_of_gradient = problem.outs % 4 == 0;
  return problem;
}

bool is_full(const GatherProblem& p) { return p.step == 1 && p.rows[0].taps == kTaps && p.columns[0].taps == kTaps; }

void apply(GatherProblem& problem, const GatherTile& tile, int splits) {
  const GatherSizes sizes(tile, problem.stride);
  problem.tiles_y = ceil_div(problem.rows[0].count, sizes.tile_rows);  // remainder 0 has the most pixels
  problem.tiles_x = ceil_div(problem.columns[0].count, tile.columns);
  problem.out_tiles = ceil_div(problem.outs, sizes.outs);
  problem.stages = ceil_div(problem.channels, tile.channels);
  problem.splits = splits;
}

void apply(WeightProblem& problem, const WeightTile& tile, int splits) {
  const WeightSizes sizes(tile, problem.stride);
  problem.tiles_y = ceil_div(problem.out_rows, tile.rows);
  problem.tiles_x = ceil_div(problem.out_columns, tile.columns);
  problem.stages = problem.images * problem.tiles_y * problem.tiles_x;
  problem.out_tiles = ceil_div(problem.outs, sizes.outs);
  problem.in_tiles = ceil_div(problem.channels, sizes.ins);
  problem.splits = splits;
}

}  // namespace tessera::cuda::core_conv
