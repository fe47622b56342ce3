// Compares the sparse kernels of every instruction set with dense loops in double over the masked weight, whichever set this
// processor would choose.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/cpu/machine_memory.h"
#include "core/cpu/reference/conv2d.h"
#include "core/cpu/sparse/gradient.h"
#include "core/cpu/sparse/product.h"
#include "core/cpu/sparse/row_dots.h"
#include "core/cpu/sparse/strips.h"
#include "core/support/error.h"
#include "tests/core/cpu/sparse_problem.h"
#include "tests/support/each_isa.h"
#include "tests/support/relative_error.h"

namespace tessera::cpu::sparse {
namespace {

// Positions that fill no panel, and more than the panels of one pass; channels that fill no vector; single rows; pieces of every
// number of rows; more columns than are multiplied together; padding, strides and dilations.
const std::vector<Case> kCases{
    {1, 1, 1, 1, 1, 1, 1, 1},
    {70, 1, 1, 200, 37, 1, .1, 1},
    {1100, 1, 1, 17, 9, 1, .3, 1},
    {33, 1, 1, 64, 64, 1, .25, 16},
    {65, 1, 1, 40, 46, 1, .5, 23},
    {129, 1, 1, 150, 10, 1, .2, 5},
    {3, 1, 1, 9, 12, 1, .4, 4},
    {2, 9, 7, 16, 19, 3, .12, 1, {.padding = {1, 1}}},
    {1, 12, 12, 5, 33, 3, .3, 11, {.padding = {1, 1}}},
    {2, 11, 8, 20, 16, 3, .2, 1, {.stride = {2, 1}, .padding = {1, 0}}},
    {1, 13, 9, 6, 24, 3, .3, 8, {.stride = {2, 2}, .padding = {2, 1}, .dilation = {2, 1}}},
    {2, 7, 7, 16, 8, 1, .3, 1, {.stride = {2, 2}}},
    {1, 6, 5, 90, 7, 3, .1, 1, {.padding = {1, 1}}},
    {66, 1, 1, 450, 35, 1, .5, 7},
};

constexpr double kTolerance = 1e-6;

class SparseKernels : public tessera::testing::EachIsa {
 protected:
  const Kernels* used = one_of(kAvx2Kernels, kAvx512Kernels);
  const rows::Kernels* used_rows = one_of(rows::kAvx2Kernels, rows::kAvx512Kernels);
};

TEST_P(SparseKernels, ForwardWithBiasAndRectifier) {
  for (const Case& c : kCases) {
    const Problem p(c);
    const Tensor x = random(p.x_shape(), 2), bias = random({c.out}, 3);
    const Tensor y = Tensor::empty(p.y_shape()), want = Tensor::empty(p.y_shape(), DType::f64);
    reference::conv2d_forward<double>(p.g, x.to(DType::f64).data<double>(), p.weight.data<double>(),
                                      bias.to(DType::f64).data<double>(), want.data<double>());
    const Plan plan = row_plan(p.index, c.kernel * c.kernel);
    for (const bool relu : {false, true}) {
      y.fill(NAN);
      multiply(*used, plan, p.packed(plan).data(), {p.g, Conv2dPass::forward}, x.data<float>(), bias.data<float>(), relu,
               y.data<float>());
      for (std::int64_t i = 0; relu && i < want.numel(); ++i) want.data<double>()[i] = std::max(want.data<double>()[i], 0.0);
      EXPECT_LE(relative_error(y, want), kTolerance) << describe(p.g) << " density " << c.density;
    }
  }
}

// Vectors beyond the caches are multiplied a few pieces at a time, and the next data is prefetched in between.
TEST_P(SparseKernels, VectorsBeyondTheCachesGiveTheBytesOfFew) {
  const std::int64_t columns = 40, rows = 520;
  const auto floats = static_cast<std::int64_t>(std::max(last_cache(), std::size_t{8} << 20) / sizeof(float));
  const std::int64_t vectors = floats / (columns + rows) + 1, few = vectors / 9;
  ASSERT_TRUE(exceeds_caches(vectors * (columns + rows) * 4));
  ASSERT_FALSE(exceeds_caches(few * (columns + rows) * 4));
  const Problem p({vectors, 1, 1, columns, rows, 1, .15, 1});
  const Tensor x = random(p.x_shape(), 2), y = Tensor::empty(p.y_shape()), parts = Tensor::empty(p.y_shape());
  const Plan plan = row_plan(p.index, 1);
  const std::vector<float> weights = p.packed(plan);
  multiply(*used, plan, weights.data(), {p.g, Conv2dPass::forward}, x.data<float>(), nullptr, false, y.data<float>());
  for (std::int64_t first = 0; first < vectors; first += few) {
    Conv2dGeometry part = p.g;
    part.n = std::min(few, vectors - first);
    multiply(*used, plan, weights.data(), {part, Conv2dPass::forward}, x.data<float>() + first * columns, nullptr, false,
             parts.data<float>() + first * rows);
  }
  EXPECT_EQ(std::memcmp(y.data<float>(), parts.data<float>(), static_cast<std::size_t>(y.numel()) * sizeof(float)), 0);
}

// Strips whose last group is full or not, strips of whole rows and of single pixels, strips that the image's edge cuts.
TEST_P(SparseKernels, StripsOfAnySize) {
  for (const Case& c : kCases) {
    const Problem p(c);
    const Tensor x = random(p.x_shape(), 2), bias = random({c.out}, 3);
    const Tensor grad_y = random(p.y_shape(), 2);
    const Tensor y = Tensor::empty(p.y_shape()), grad_x = Tensor::empty(p.x_shape());
    const Tensor want_y = Tensor::empty(p.y_shape(), DType::f64), want_x = Tensor::empty(p.x_shape(), DType::f64);
    reference::conv2d_forward<double>(p.g, x.to(DType::f64).data<double>(), p.weight.data<double>(),
                                      bias.to(DType::f64).data<double>(), want_y.data<double>());
    reference::conv2d_backward_input<double>(p.g, grad_y.to(DType::f64).data<double>(), p.weight.data<double>(),
                                             want_x.data<double>());
    const Window forward(p.g, Conv2dPass::forward), backward(p.g, Conv2dPass::backward_input);
    const Plan rows = row_plan(p.index, c.kernel * c.kernel), columns = column_plan(p.index, c.kernel * c.kernel);
    for (const auto& [height, width] : {Extent{1, 1}, Extent{2, 3}, Extent{3, 6}, Extent{20, 4}}) {
      y.fill(NAN);
      multiply_strips(*used, rows, p.packed(rows).data(), forward, strips_of(forward, height, width), x.data<float>(),
                      bias.data<float>(), false, y.data<float>());
      EXPECT_LE(relative_error(y, want_y), kTolerance) << describe(p.g) << " strips " << height << 'x' << width;
      if (!backward.slides()) continue;
      grad_x.fill(NAN);
      multiply_strips(*used, columns, p.packed(columns).data(), backward, strips_of(backward, height, width),
                      grad_y.data<float>(), nullptr, false, grad_x.data<float>());
      EXPECT_LE(relative_error(grad_x, want_x), kTolerance) << describe(p.g) << " strips " << height << 'x' << width;
    }
  }
}

TEST(SparseStrips, AreForManyImagesAndNotForOne) {
  const Conv2dGeometry many{32, 8, 8, 64, 64, 3, 3, 8, 8, {.padding = {1, 1}}};
  const Problem few({1, 4, 4, 64, 16, 3, .25, 16, {.padding = {1, 1}}});
  const Plan plan = row_plan(few.index, 9);
  const auto strips = best_strips({many, Conv2dPass::forward}, plan);
  ASSERT_TRUE(strips);
  EXPECT_GE(strips->groups({many, Conv2dPass::forward}), 4);
  EXPECT_FALSE(best_strips({few.g, Conv2dPass::forward}, plan)) << "sixteen results";
  EXPECT_FALSE(best_strips({Problem({70, 1, 1, 64, 16, 1, .25, 1}).g, Conv2dPass::forward}, plan)) << "a linear layer";
}

TEST_P(SparseKernels, BackwardInput) {
  for (const Case& c : kCases) {
    const Problem p(c);
    const Tensor grad_y = random(p.y_shape(), 2);
    const Tensor grad_x = Tensor::empty(p.x_shape()), want = Tensor::empty(p.x_shape(), DType::f64);
    reference::conv2d_backward_input<double>(p.g, grad_y.to(DType::f64).data<double>(), p.weight.data<double>(),
                                             want.data<double>());
    const Plan plan = column_plan(p.index, c.kernel * c.kernel);
    grad_x.fill(NAN);
    multiply(*used, plan, p.packed(plan).data(), {p.g, Conv2dPass::backward_input}, grad_y.data<float>(), nullptr, false,
             grad_x.data<float>());
    EXPECT_LE(relative_error(grad_x, want), kTolerance) << describe(p.g) << " density " << c.density;
  }
}

// Columns that fill no vector and several vectors; rows that are alone, in groups, next to groups, and empty.
TEST_P(SparseKernels, FewVectorsAreMultipliedByRows) {
  for (const auto& [columns, rows, density, sharing] : {std::tuple{1, 1, 1.0, 1},
                                                        {13, 7, 0.3, 1},
                                                        {64, 10, 0.0, 1},
                                                        {400, 300, 0.5, 1},
                                                        {300, 325, .4, 64},
                                                        {131, 150, 1.0, 150},
                                                        {2, 400, .3, 8}}) {
    const Problem p({7, 1, 1, columns, rows, 1, density, sharing});
    const GroupedRows groups = grouped_rows(p.index);
    const Tensor x = random(p.x_shape(), 2), bias = random({rows}, 3);
    const Tensor want = Tensor::empty(p.y_shape(), DType::f64);
    reference::conv2d_forward<double>(p.g, x.to(DType::f64).data<double>(), p.weight.data<double>(),
                                      bias.to(DType::f64).data<double>(), want.data<double>());
    for (const bool relu : {false, true}) {
      for (std::int64_t i = 0; relu && i < want.numel(); ++i) want.data<double>()[i] = std::max(want.data<double>()[i], 0.0);
      for (std::int64_t vectors = 1; vectors <= 7; ++vectors) {
        const Tensor y = Tensor::full({vectors, rows}, NAN);
        multiply_few(*used_rows, p.index, groups, p.values.data<float>(), vectors, x.data<float>(), bias.data<float>(), relu,
                     y.data<float>());
        const Tensor some = want.reshape({7, rows}).slice(0, 0, vectors).contiguous();
        EXPECT_LE(relative_error(y, some), kTolerance) << vectors << " vectors of " << columns << ", " << rows << " rows";
      }
    }
  }
}

// The gradient of the kept elements, from double sums over the dense weight.
std::vector<double> gradient_of(const Problem& p, const Tensor& x, const Tensor& grad_y) {
  const Tensor dense = Tensor::empty(p.mask.shape(), DType::f64);
  reference::conv2d_backward_weight<double>(p.g, x.to(DType::f64).data<double>(), grad_y.to(DType::f64).data<double>(),
                                            dense.data<double>(), nullptr);
  std::vector<double> kept;
  for (std::int64_t i = 0; i < dense.numel(); ++i) {
    if (p.mask.data<std::uint8_t>()[i] != 0) kept.push_back(dense.data<double>()[i]);
  }
  return kept;
}

// The products' cases, and rows that share columns in tiles of whole vectors, in ragged tiles and in several tiles; empty rows;
// masks that keep nothing, and everything.
std::vector<Case> gradient_cases() {
  std::vector<Case> cases = kCases;
  cases.push_back({40, 1, 1, 30, 150, 1, .3, 150});
  cases.push_back({300, 1, 1, 33, 128, 1, .2, 64});
  cases.push_back({17, 1, 1, 70, 57, 1, .2, 57});
  cases.push_back({200, 1, 1, 3, 90, 1, .3, 1});
  cases.push_back({5, 4, 4, 40, 130, 3, .3, 65, {.padding = {1, 1}}});
  cases.push_back({20, 1, 1, 13, 21, 1, 0, 1});
  cases.push_back({150, 1, 1, 130, 7, 1, 1, 1});
  cases.push_back({4, 1, 1, 400, 300, 1, .5, 1});
  cases.push_back({3, 17, 21, 7, 5, 3, 1, 1, {.padding = {1, 1}}});
  // A group of rows that several threads share, with one vector and with as many vectors as are multiplied together.
  cases.push_back({1, 1, 1, 310, 400, 1, .5, 400});
  cases.push_back({4, 1, 1, 310, 400, 1, .5, 400});
  return cases;
}

TEST_P(SparseKernels, GradientOfTheValues) {
  for (const Case& c : gradient_cases()) {
    const Problem p(c);
    const Tensor x = random(p.x_shape(), 2), grad_y = random(p.y_shape(), 4);
    const std::vector<double> want = gradient_of(p, x, grad_y);
    const Window window(p.g, Conv2dPass::forward);
    const GradientPlan plan = gradient_plan(p.index, c.kernel * c.kernel);
    // Panels; strips whose last group is full or not; rows longer than a run.
    for (const auto& strips : {std::optional<Extent>{}, {Extent{1, 1}}, {Extent{2, 3}}, {Extent{20, 7}}, {Extent{3, 19}}}) {
      std::vector<float> grad(want.size(), NAN);
      gradient(*used, plan, window, strips, x.data<float>(), grad_y.data<float>(), grad.data());
      EXPECT_LE(relative_error(std::vector<double>(grad.begin(), grad.end()), want), kTolerance)
          << describe(p.g) << " density " << c.density << (strips ? str(" strips ", *strips) : " panels");
    }
  }
}

TEST(SparseGradientStrips, AreForManyImagesAndNotForFewPixels) {
  const Problem many({32, 8, 8, 16, 64, 3, .2, 1, {.padding = {1, 1}}}), few({1, 4, 4, 64, 16, 3, .25, 16, {.padding = {1, 1}}});
  EXPECT_TRUE(gradient_strips(gradient_plan(many.index, 9), {many.g, Conv2dPass::forward}));
  EXPECT_FALSE(gradient_strips(gradient_plan(few.index, 9), {few.g, Conv2dPass::forward}));
  const Problem linear({70, 1, 1, 64, 16, 1, .25, 1});
  EXPECT_FALSE(gradient_strips(gradient_plan(linear.index, 1), {linear.g, Conv2dPass::forward}));
}

// Products in panels, in strips and with few vectors, and both gradients.
std::vector<float> every_product(const Kernels& kernels, const rows::Kernels& row_kernels, const Problem& p, const Tensor& x,
                                 const Tensor& grad_y) {
  const std::int64_t taps = p.g.kh * p.g.kw;
  const Plan rows = row_plan(p.index, taps), columns = column_plan(p.index, taps);
  const std::vector<float> by_rows = p.packed(rows), by_columns = p.packed(columns);
  std::vector<float> all;
  const auto add = [&](const Shape& shape, const auto& product) {
    const Tensor result = Tensor::full(shape, NAN);
    product(result.data<float>());
    const std::vector<float> values = result.to_vector<float>();
    all.insert(all.end(), values.begin(), values.end());
  };
  const Window forward(p.g, Conv2dPass::forward), backward(p.g, Conv2dPass::backward_input);
  add(p.y_shape(), [&](float* y) { multiply(kernels, rows, by_rows.data(), forward, x.data<float>(), nullptr, false, y); });
  add(p.x_shape(), [&](float* grad_x) {
    multiply(kernels, columns, by_columns.data(), backward, grad_y.data<float>(), nullptr, false, grad_x);
  });
  add(p.y_shape(), [&](float* y) {
    multiply_strips(kernels, rows, by_rows.data(), forward, strips_of(forward, 2, 3), x.data<float>(), nullptr, false, y);
  });
  if (backward.slides()) {
    add(p.x_shape(), [&](float* grad_x) {
      multiply_strips(kernels, columns, by_columns.data(), backward, strips_of(backward, 2, 3), grad_y.data<float>(), nullptr,
                      false, grad_x);
    });
  }
  const GradientPlan plan = gradient_plan(p.index, taps);
  for (const auto& strips : {std::optional<Extent>{}, {Extent{2, 3}}}) {
    add({p.index.count()},
        [&](float* grad) { gradient(kernels, plan, forward, strips, x.data<float>(), grad_y.data<float>(), grad); });
  }
  if (p.g.is_pointwise()) {
    const std::int64_t vectors = std::min(p.g.n * p.g.oh * p.g.ow, kFewVectors);
    add({vectors, p.g.out}, [&](float* y) {
      multiply_few(row_kernels, p.index, grouped_rows(p.index), p.values.data<float>(), vectors, x.data<float>(), nullptr, false,
                   y);
    });
  }
  return all;
}

TEST_P(SparseKernels, AnyNumberOfThreadsGivesTheSameBytes) {
  const int before = omp_get_max_threads();
  for (const Case& c : gradient_cases()) {
    const Problem p(c);
    const Tensor x = random(p.x_shape(), 2), grad_y = random(p.y_shape(), 4);
    std::vector<float> one;
    for (const int threads : {1, 2, 3, 16}) {
      omp_set_num_threads(threads);
      const std::vector<float> result = every_product(*used, *used_rows, p, x, grad_y);
      if (threads == 1) one = result;
      EXPECT_EQ(result, one) << describe(p.g) << ", " << threads << " threads";
    }
  }
  omp_set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(Cpu, SparseKernels, ::testing::Values("avx2", "avx512"), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera::cpu::sparse
