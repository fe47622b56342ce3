// Sums of the exponentials of rows that are longer than the pieces in which they are read, in the kernels of every instruction
// set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cpu/rows/problem.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "tests/support/each_isa.h"

namespace tessera::cpu::rows {
namespace {

constexpr double kTolerance = 4e-6;  // a few roundings of sums

Tensor random(std::int64_t n) {
  const Tensor x = Tensor::empty({n});
  fill_uniform(x, RngStream(3, "exp_sum_test", "values"), -30, 30, 1);
  return x;
}

class ExpSumKernels : public tessera::testing::EachIsa {
 protected:
  const Kernels* used = one_of(kAvx2Kernels, kAvx512Kernels);
};

// Of rows longer than a piece, whose largest element is in the first, a middle or the last piece, beside pieces of -Inf alone.
TEST_P(ExpSumKernels, AgreeWithDoubleInLongRows) {
  constexpr std::int64_t n = 7001;
  for (const std::int64_t top : {std::int64_t{5}, std::int64_t{4000}, n - 1}) {
    for (const std::int64_t hidden : {std::int64_t{0}, std::int64_t{4500}}) {  // elements at the row's begin that are -Inf
      const Tensor x = random(n);
      float* const at = x.data<float>();
      std::fill_n(at, hidden, -INFINITY);
      at[top] = 40;
      double want = 0;
      for (std::int64_t i = 0; i < n; ++i) want += std::exp(double{at[i]} - 40);
      const ExpSum<float> sum = used->exp_sum(at, n);
      EXPECT_EQ(sum.top, 40.0F);
      EXPECT_NEAR(sum.total / want, 1, kTolerance) << top << ' ' << hidden;
    }
  }
}

// Wherever it is, and whatever lies before it.
TEST_P(ExpSumKernels, KeepNaN) {
  constexpr std::int64_t n = 5000;
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{7}, std::int64_t{2048}, std::int64_t{3000}, n - 1}) {
    for (const std::int64_t hidden : {0, 2048, 4096}) {  // elements at the row's begin that are -Inf
      const Tensor x = random(n);
      std::fill_n(x.data<float>(), hidden, -INFINITY);
      x.data<float>()[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(used->exp_sum(x.data<float>(), n).total)) << at << ' ' << hidden;
    }
  }
  const Tensor none = Tensor::full({n}, -INFINITY);
  EXPECT_TRUE(std::isnan(used->exp_sum(none.data<float>(), n).total)) << "as in a row of one piece";
  EXPECT_TRUE(std::isnan(used->exp_sum(none.data<float>(), 20).total));
}

INSTANTIATE_TEST_SUITE_P(Cpu, ExpSumKernels, ::testing::Values("avx2", "avx512"), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera::cpu::rows
