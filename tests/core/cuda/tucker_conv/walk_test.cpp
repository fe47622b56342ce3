// Runs the fused Tucker-2 convolution's phases without a GPU, as the kernels run them, against plain loops in double.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/support/error.h"
#include "tests/core/cuda/tucker_conv/support.h"
#include "tests/core/cuda/tucker_conv/walk.h"

namespace tessera::cuda {
namespace {

// Edge cases: sizes that no tile divides, parities, one pixel, channels that are no multiple of anything, missing factors.
std::vector<TuckerConvShape> odd_shapes() {
  return {
      {.images = 2, .h = 11, .w = 9, .in = 24, .rank_in = 12, .rank_out = 20, .out = 28},
      {.images = 1, .h = 13, .w = 7, .in = 7, .rank_in = 5, .rank_out = 3, .out = 9, .padding = {0, 1}},
      {.images = 2, .h = 9, .w = 12, .in = 40, .rank_in = 17, .rank_out = 34, .out = 70, .stride = {2, 2}},
      {.images = 1, .h = 8, .w = 8, .in = 16, .rank_in = 8, .rank_out = 8, .out = 16, .stride = {2, 2}, .padding = {0, 0}},
      {.images = 1, .h = 10, .w = 15, .in = 8, .rank_in = 4, .rank_out = 6, .out = 8, .kernel = {5, 3}, .stride = {1, 2},
       .padding = {2, 0}},
      {.images = 1, .h = 9, .w = 9, .in = 12, .rank_in = 12, .rank_out = 8, .out = 20, .in_factor = false},
      {.images = 2, .h = 7, .w = 9, .in = 20, .rank_in = 9, .rank_out = 13, .out = 13, .stride = {2, 1}, .out_factor = false},
      {.images = 3, .h = 1, .w = 1, .in = 10, .rank_in = 4, .rank_out = 4, .out = 6},
      {.images = 1, .h = 7, .w = 6, .in = 10, .rank_in = 4, .rank_out = 4, .out = 6, .kernel = {1, 1}, .stride = {2, 2},
       .padding = {0, 0}},
      {.images = 1, .h = 6, .w = 7, .in = 9, .rank_in = 5, .rank_out = 4, .out = 6, .kernel = {2, 2}, .stride = {2, 2}},
  };
}

template <class T>
void set_vectors(ChainArguments<T>& args) {
  const auto fits = [](int channels, std::size_t bytes) { return static_cast<std::size_t>(channels) * bytes % 16 == 0; };
  args.vector_x = fits(args.shape.wide_in, sizeof(T));
  args.vector_in = fits(args.shape.wide_in, 4);
  args.vector_core = fits(args.shape.narrow_in, 4);
  args.vector_out = fits(args.shape.narrow_out, 4);
}

// Sets elements that no window reads to the expected values: tiles may leave them out.
template <class T>
void drop_unreached(const CoreAxis& rows, const CoreAxis& columns, int channels, std::vector<T>& actual,
                    const Numbers& expected) {
  const auto read = [](const CoreAxis& axis, int q) {
    for (int tap = 0; tap < axis.kernel; ++tap) {
      const int start = q + axis.padding - tap;
      if (start >= 0 && start % axis.stride == 0 && start / axis.stride < axis.outs) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const int pixel = static_cast<int>(i) / channels;
    if (read(rows, pixel / columns.image % rows.image) && read(columns, pixel % columns.image)) continue;
    actual[i] = narrow<T>(static_cast<float>(expected[i]));
  }
}

template <class Math>
void check_forward(const Problem& p, int tile_h, int tile_w, double tolerance) {
  using T = typename Math::Storage;
  const std::vector<T> x = as<T>(p.x);
  const std::vector<float> in_factor = as<float>(p.in_factor), core = as<float>(p.core), out_factor = as<float>(p.out_factor);
  const std::vector<float> bias = as<float>(p.bias);
  std::vector<T> y = unwritten<T>(p.y.size()), narrow_in = unwritten<T>(p.narrow_in.size());
  std::vector<T> narrow_out = unwritten<T>(p.narrow_out.size());
  ChainArguments<T> args{.shape = chain_shape(p.conv, false, tile_h, tile_w), .x = x.data(), .in_factor = in_factor.data(),
                         .core = core.data(), .out_factor = out_factor.data(), .bias = bias.data(), .y = y.data()};
  if (p.conv.in_factor) args.narrow_in = narrow_in.data();
  if (p.conv.out_factor) args.narrow_out = narrow_out.data();
  set_vectors(args);
  walk_chain<Math>(args);
  EXPECT_LT(error_of(y, p.y), tolerance);
  if (p.conv.out_factor) {
    EXPECT_LT(error_of(narrow_out, p.narrow_out), tolerance);
  }
  if (!p.conv.in_factor) return;
  drop_unreached(p.conv.rows(), p.conv.columns(), args.shape.narrow_in, narrow_in, p.narrow_in);
  EXPECT_LT(error_of(narrow_in, p.narrow_in), tolerance);
}

std::vector<float> transposed(const Numbers& weight, std::int64_t outer, int taps, std::int64_t inner) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < (weight.empty() ? 0 : inner); ++i) {
    for (int t = 0; t < taps; ++t) {
      for (std::int64_t o = 0; o < outer; ++o) {
        result.push_back(static_cast<float>(weight[static_cast<std::size_t>((o * taps + t) * inner + i)]));
      }
    }
  }
  return result;
}

template <class Math>
void check_backward_input(const Problem& p, int tile_h, int tile_w, double tolerance) {
  using T = typename Math::Storage;
  const std::vector<T> grad_y = as<T>(p.grad_y);
  const std::vector<float> out_factor = transposed(p.out_factor, p.conv.out, 1, p.conv.rank_out);
  const std::vector<float> core = transposed(p.core, p.conv.rank_out, chain_shape(p.conv, true, 1, 1).taps(), p.conv.rank_in);
  const std::vector<float> in_factor = transposed(p.in_factor, p.conv.rank_in, 1, p.conv.in);
  std::vector<T> grad_x = unwritten<T>(p.grad_x.size()), grad_in = unwritten<T>(p.grad_narrow_in.size());
  std::vector<T> grad_out = unwritten<T>(p.grad_narrow_out.size());
  ChainArguments<T> args{.shape = chain_shape(p.conv, true, tile_h, tile_w), .x = grad_y.data(), .in_factor = out_factor.data(),
                         .core = core.data(), .out_factor = in_factor.data(), .y = grad_x.data()};
  if (p.conv.out_factor) args.narrow_in = grad_out.data();
  if (p.conv.in_factor) args.narrow_out = grad_in.data();
  set_vectors(args);
  walk_chain<Math>(args);
  EXPECT_LT(error_of(grad_x, p.grad_x), tolerance);
  if (p.conv.out_factor) {
    EXPECT_LT(error_of(grad_out, p.grad_narrow_out), tolerance);
  }
  if (p.conv.in_factor) {
    EXPECT_LT(error_of(grad_in, p.grad_narrow_in), tolerance);
  }
}

template <class Math>
void check_weights(const Problem& p, int walkers, double tolerance) {
  using T = typename Math::Storage;
  const std::vector<CorrelationShape> shapes = correlation_shapes(p.conv);
  std::vector<T> right = as<T>(p.narrow_in);
  const std::vector<T> left = as<T>(p.grad_narrow_out), grad_in = as<T>(p.grad_narrow_in), x = as<T>(p.x);
  const std::vector<T> grad_y = as<T>(p.grad_y), narrow_out = as<T>(p.narrow_out);
  for (std::size_t i = 0; i < right.size(); ++i) {  // pixels after the last window are never stored
    const auto pixel = static_cast<int>(i / static_cast<std::size_t>(p.conv.rank_in));
    const int row = pixel / shapes[0].columns.image % shapes[0].rows.image, column = pixel % shapes[0].columns.image;
    if (row >= reached(shapes[0].rows) || column >= reached(shapes[0].columns)) right[i] = unwritten<T>(1)[0];
  }
  CorrelateArguments<T> args;
  std::vector<Numbers> expected{p.grad_core};
  const auto add = [&](const std::vector<T>& a, const std::vector<T>& b, bool bias) {
    const CorrelationShape& shape = shapes[static_cast<std::size_t>(args.count)];
    const auto fits = [](int channels) { return static_cast<std::size_t>(channels) * sizeof(T) % 16 == 0; };
    args.jobs[args.count++] = {shape, a.data(), b.data(), fits(shape.a), fits(shape.b), bias, args.bias_begin};
    args.bias_begin += std::int64_t{shape.a} * shape.taps() * shape.b;
  };
  add(left, right, !p.conv.out_factor);
  if (p.conv.in_factor) add(grad_in, x, false), expected.push_back(p.grad_in_factor);
  if (p.conv.out_factor) add(grad_y, narrow_out, true), expected.push_back(p.grad_out_factor);
  expected.push_back(p.grad_bias);
  args.partial_size = args.bias_begin + p.conv.out;
  std::vector<float> partials = unwritten<float>(static_cast<std::size_t>(walkers * args.partial_size));
  args.partials = partials.data();
  walk_correlations<Math>(args, walkers);
  auto at = partials.begin();
  for (const Numbers& numbers : expected) {
    std::vector<float> sums(numbers.size());
    for (int walker = 0; walker < walkers; ++walker) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += at[walker * args.partial_size + static_cast<std::ptrdiff_t>(i)];
    }
    EXPECT_LT(error_of(sums, numbers), tolerance);
    at += static_cast<std::ptrdiff_t>(numbers.size());
  }
}

template <class... Maths>
void check_passes(const Problem& p, bool backward, const ChainCandidate& at, double tolerance) {
  SCOPED_TRACE(::testing::Message() << (backward ? "backward " : "forward ") << at.block.rows << 'x' << at.block.columns
                                    << " tile " << at.tile_h << 'x' << at.tile_w);
  int ran = 0;
  const auto run = [&]<class Math>() {
    if (Math::kShape.rows != at.block.rows || Math::kShape.columns != at.block.columns) return;
    ++ran;
    if (backward) check_backward_input<Math>(p, at.tile_h, at.tile_w, tolerance);
    else check_forward<Math>(p, at.tile_h, at.tile_w, tolerance);
  };
  (run.template operator()<Maths>(), ...);
  EXPECT_EQ(ran, 1) << "every block shape of the plan has one kernel";
}

void check_all_passes(const Problem& p, bool backward, const ChainCandidate& at) {
  if (p.conv.math == TuckerMath::f32) {
    check_passes<Ffma<1, 16>, Ffma<1, 8>, Ffma<2, 8>, Ffma<4, 8>, Ffma<4, 16>, Ffma<8, 16>>(p, backward, at, 1e-5);
  } else if (p.conv.math == TuckerMath::tf32) {  // the host multiplies in f32
    check_passes<Mma<float, 1, 2>, Mma<float, 1, 4>, Mma<float, 2, 4>>(p, backward, at, 1e-5);
  } else if (p.conv.math == TuckerMath::bf16) {  // three roundings to 8 bits: both narrow images and the result
    check_passes<Mma<bfloat16, 1, 2>, Mma<bfloat16, 1, 4>, Mma<bfloat16, 2, 4>>(p, backward, at, 1.5e-2);
  } else {
    check_passes<Mma<float16, 1, 2>, Mma<float16, 1, 4>, Mma<float16, 2, 4>>(p, backward, at, 2e-3);
  }
}

// Walks `conv` with the tiles that are planned for `whole`.
void check_planned(const TuckerConvShape& conv, const TuckerConvShape& whole) {
  const Problem p = random_problem(conv);
  const TuckerPlanning planning = plan_tucker_conv(whole, true, kH100);
  ASSERT_TRUE(planning.plan.has_value()) << planning.reason;
  check_all_passes(p, false, planning.plan->forward);
  check_all_passes(p, true, planning.plan->backward);
}

std::string name_of(const TuckerConvShape& c) {
  return str(c.images, 'x', c.h, 'x', c.w, ' ', c.in, '>', c.rank_in, '>', c.rank_out, '>', c.out, " kernel ", c.kernel,
             " stride ", c.stride);
}

TEST(TuckerConv, EveryBenchmarkCoreForwardAndBackward) {
  for (const auto& core : kTdcCores) {
    TuckerConvShape conv = tdc(core);
    conv.h = std::min<std::int64_t>(conv.h, conv.h > 28 ? 9 : 28);  // a band that includes both edges
    SCOPED_TRACE(name_of(conv));
    check_planned(conv, tdc(core));
    check_weights<CorrelateFfma>(random_problem(conv), 3, 1e-5);
  }
}

TEST(TuckerConv, OddShapesInEveryBlockAndType) {
  for (const TuckerMath math : {TuckerMath::f32, TuckerMath::tf32, TuckerMath::bf16, TuckerMath::f16}) {
    for (TuckerConvShape conv : odd_shapes()) {
      SCOPED_TRACE(name_of(conv));
      conv.math = math;
      const Problem p = random_problem(conv);
      for (const bool backward : {false, true}) {
        const auto candidates = chain_candidates(conv, backward, kH100);
        for (std::size_t i = 0; i < candidates.size(); i += 7) {  // ten tiles a block: every tile and block occurs
          check_all_passes(p, backward, candidates[i]);
        }
      }
    }
  }
}

TEST(TuckerConv, WeightGradientsOfOddShapes) {
  for (const TuckerConvShape& conv : odd_shapes()) {
    SCOPED_TRACE(name_of(conv));
    const Problem p = random_problem(conv);
    for (const int walkers : {1, 4}) {
      check_weights<CorrelateFfma>(p, walkers, 1e-5);
      check_weights<CorrelateMma<float>>(p, walkers, 1e-5);
      check_weights<CorrelateMma<bfloat16>>(p, walkers, 1.5e-2);
      check_weights<CorrelateMma<float16>>(p, walkers, 2e-3);
    }
  }
  // More than nine taps and more than nine slices of channels.
  const TuckerConvShape large{.images = 1, .h = 6, .w = 10, .in = 330, .rank_in = 36, .rank_out = 33, .out = 40, .kernel = {5, 5},
                              .padding = {2, 2}};
  check_weights<CorrelateFfma>(random_problem(large), 2, 1e-5);
}

// Bias, residual and rectifier, with and without an out factor; a NaN stays one.
TEST(TuckerConv, EpilogueAddsAndRectifies) {
  for (const std::size_t index : {std::size_t{0}, std::size_t{6}}) {
    const Problem p = random_problem(odd_shapes()[index]);
    const std::vector<float> x = as<float>(p.x), in_factor = as<float>(p.in_factor), core = as<float>(p.core);
    const std::vector<float> out_factor = as<float>(p.out_factor), bias = as<float>(p.bias);
    std::vector<float> residual(p.y.size()), y = unwritten<float>(p.y.size());
    Numbers expected(p.y.size());
    int rectified = 0;
    for (std::size_t i = 0; i < residual.size(); ++i) {
      residual[i] = static_cast<float>(i % 7) - 3;
      expected[i] = std::max(0.0, p.y[i] + residual[i]);
      rectified += expected[i] == 0;
    }
    EXPECT_GT(rectified, 0);
    residual[5] = NAN;
    ChainArguments<float> args{.shape = chain_shape(p.conv, false, 4, 4), .x = x.data(), .in_factor = in_factor.data(),
                               .core = core.data(), .out_factor = out_factor.data(), .bias = bias.data(),
                               .residual = residual.data(), .y = y.data(), .relu = true};
    set_vectors(args);
    walk_chain<Ffma<2, 8>>(args);
    EXPECT_TRUE(std::isnan(y[5]));
    y[5] = static_cast<float>(expected[5]);
    EXPECT_LT(error_of(y, expected), 1e-5);
  }
}

// An output that is not requested is not computed, and the requested one stays the same.
TEST(TuckerConv, NarrowImagesWithoutTheWideOne) {
  const Problem p = random_problem(odd_shapes()[2]);
  const std::vector<float> grad_y = as<float>(p.grad_y), in_factor = transposed(p.in_factor, p.conv.rank_in, 1, p.conv.in);
  const std::vector<float> core = transposed(p.core, p.conv.rank_out, 9, p.conv.rank_in);
  const std::vector<float> out_factor = transposed(p.out_factor, p.conv.out, 1, p.conv.rank_out);
  for (const bool both : {true, false}) {
    std::vector<float> grad_out = unwritten<float>(p.grad_narrow_out.size());
    std::vector<float> grad_in = unwritten<float>(p.grad_narrow_in.size());
    ChainArguments<float> args{.shape = chain_shape(p.conv, true, 4, 4), .x = grad_y.data(), .in_factor = out_factor.data(),
                               .core = core.data(), .out_factor = in_factor.data(), .narrow_in = grad_out.data(),
                               .narrow_out = both ? grad_in.data() : nullptr};
    set_vectors(args);
    walk_chain<Ffma<2, 8>>(args);
    EXPECT_LT(error_of(grad_out, p.grad_narrow_out), 1e-5);
    if (both) {
      EXPECT_LT(error_of(grad_in, p.grad_narrow_in), 1e-5);
    }
  }
}

}  // namespace
}  // namespace tessera::cuda
