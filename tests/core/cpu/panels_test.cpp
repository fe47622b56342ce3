// Compares the kernels of every instruction set with the loops in double, whichever set this processor would choose.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "core/cpu/panels/product.h"
#include "core/cpu/parallel.h"
#include "core/cpu/reference/matmul.h"
#include "core/rng.h"
#include "tests/support/each_isa.h"
#include "tests/support/guarded.h"
#include "tests/support/relative_error.h"

namespace tessera::cpu::panels {
namespace {

using testing::Guarded;

struct Case {
  std::int64_t m, n, k;
};

// Full panels, panels of whole vectors and narrower ones; rows that fill the registers or not; more rows than take turns;
// one, two and three blocks of depth, the last one shorter; more columns than transposed sums hold; one row, column and step.
constexpr Case kCases[]{{1, 1, 1},      {6, 64, 16},   {7, 65, 17},    {64, 6, 385},  {97, 80, 769}, {203, 129, 31},
                        {48, 200, 384}, {515, 521, 3}, {523, 600, 40}, {1, 131, 770}, {130, 1, 33},  {11, 49, 1601}};

Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(9, "panels_test", "values"), -1, 1, index);
  return x;
}

std::vector<double> expected(const Case& c, const Tensor& a, const Tensor& b, bool transposed, const Tensor& bias) {
  const Tensor wide_a = a.to(DType::f64), wide_b = b.to(DType::f64), wide_bias = bias.defined() ? bias.to(DType::f64) : Tensor();
  const Tensor y = Tensor::empty({c.m, c.n}, DType::f64);
  reference::matmul<double>({1, c.m, c.n, c.k}, {wide_a.data<double>(), 0, c.k, 1},
                            {wide_b.data<double>(), 0, transposed ? 1 : c.n, transposed ? c.k : 1},
                            bias.defined() ? wide_bias.data<double>() : nullptr, {y.data<double>(), 0, c.n, 1});
  return y.to_vector<double>();
}

class PanelKernels : public tessera::testing::EachIsa {
 protected:
  const Kernels* kernels = one_of(kAvx2Kernels, kAvx512Kernels);
};

// Runs in one thread, so that rows are taken in turns with the panels, however many cores there are.
TEST_P(PanelKernels, AgreeWithTheReferenceAndWriteNothingElse) {
  const OneThread alone;
  for (const Case& c : kCases) {
    for (const bool transposed : {false, true}) {
      for (const bool with_bias : {false, true}) {
        SCOPED_TRACE(str(c.m, 'x', c.n, 'x', c.k, transposed ? " b transposed" : "", with_bias ? " with a bias" : ""));
        const Guarded a(random({c.m, c.k}, 0)), b(random(transposed ? Shape{c.n, c.k} : Shape{c.k, c.n}, 1));
        const Guarded bias(random({c.n}, 2)), y(Tensor::full({c.m, c.n}, std::numeric_limits<double>::quiet_NaN()));
        const Tensor added = with_bias ? bias.tensor() : Tensor();
        product(*kernels, {a.tensor(), b.tensor(), transposed}, added, y.tensor());
        EXPECT_LE(
            relative_error(y.tensor().to(DType::f64).to_vector<double>(), expected(c, a.tensor(), b.tensor(), transposed, added)),
            1e-5);
        EXPECT_TRUE(y.margins_intact());
        EXPECT_TRUE(a.intact() && b.intact() && bias.intact());
      }
    }
  }
}

TEST_P(PanelKernels, GiveTheSameBytesInAnyNumberOfThreads) {
  const int threads = omp_get_max_threads();
  for (const Case& c : {Case{515, 129, 400}, Case{129, 515, 400}}) {
    const Tensor a = random({c.m, c.k}, 0), b = random({c.n, c.k}, 1), bias = random({c.n}, 2);
    std::vector<std::vector<float>> results;
    for (const int count : {1, 2, 3}) {
      omp_set_num_threads(count);
      const Tensor y = Tensor::empty({c.m, c.n});
      product(*kernels, {a, b, true}, bias, y);
      results.push_back(y.to_vector<float>());
    }
    omp_set_num_threads(threads);
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

// A NaN survives a factor of 0 and appears in no other column.
TEST_P(PanelKernels, KeepNaN) {
  for (const auto& [m, n] : {std::pair(7, 70), std::pair(70, 7)}) {
    const Tensor a = Tensor::zeros({m, 20}), b = Tensor::full({n, 20}, 1), y = Tensor::empty({m, n});
    b.slice(0, 3, 4).fill(std::numeric_limits<double>::quiet_NaN());
    product(*kernels, {a, b, true}, {}, y);
    for (std::int64_t i = 0; i < y.numel(); ++i) EXPECT_EQ(std::isnan(y.data<float>()[i]), i % n == 3) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, PanelKernels, ::testing::Values("avx2", "avx512"), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera::cpu::panels
