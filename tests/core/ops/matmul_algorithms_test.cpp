// Forces every algorithm that a clock may choose for a matrix product in turn: it runs, and agrees with the f64 loops.
#include <gtest/gtest.h>

#include <limits>

#include "core/cpu/cache_sweep.h"
#include "core/device/decisions.h"
#include "core/ops/matmul.h"
#include "core/ops/matmul_plan_cpu.h"
#include "core/rng.h"
#include "core/support/log.h"
#include "tests/support/relative_error.h"
#include "tests/support/scopes.h"

namespace tessera {
namespace {

struct Case {
  std::int64_t m, n, k;
};

// All are above the size from which algorithms are chosen. Primes and skinny shapes.
constexpr Case kCases[]{{127, 131, 137}, {1021, 61, 577}, {3, 4099, 211}, {4099, 3, 211}, {64, 64, 1009}, {1, 2003, 1009}};

Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(7, "matmul_algorithms_test", "values"), -1, 1, index);
  return x;
}

std::vector<double> run(const Case& c, const MatmulOptions& options, DType dtype) {
  const Tensor a = random(options.transpose_a ? Shape{1, c.k, c.m} : Shape{1, c.m, c.k}, 0).to(dtype);
  const Tensor b = random(options.transpose_b ? Shape{1, c.n, c.k} : Shape{1, c.k, c.n}, 1).to(dtype);
  const Tensor y = Tensor::full({1, c.m, c.n}, std::numeric_limits<double>::quiet_NaN(), dtype);
  cpu::matmul(a, b, y, options);
  return y.to(DType::f64).to_vector<double>();
}

class MatmulAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(MatmulAlgorithm, AgreesWithTheReferenceAndRuns) {
  const DecisionScope scope({.forced = GetParam()});
  for (const Case& c : kCases) {
    for (const MatmulOptions options : {MatmulOptions{}, {true, false}, {false, true}, {true, true}}) {
      const bool larger_in_place = !options.transpose_a && (options.transpose_b || c.m >= c.n);
      const bool offered = GetParam() != "panels" || larger_in_place;
      SCOPED_TRACE(
          str(c.m, 'x', c.n, 'x', c.k, options.transpose_a ? " a transposed" : "", options.transpose_b ? " b transposed" : ""));
      const std::size_t before = cpu::matmul_runs(GetParam());
      const std::vector<double> got = run(c, options, DType::f32);
      EXPECT_EQ(cpu::matmul_runs(GetParam()), before + (offered ? 1 : 0));
      const std::vector<double> want = run(c, options, DType::f64);
      EXPECT_LE(relative_error(got, want), 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, MatmulAlgorithm, ::testing::Values("matmul", "sgemm", "panels"),
                         [](const auto& test) { return test.param; });

TEST(MatmulDecision, IsRecordedOnceAndReplayedWithoutAClock) {
  const Case c = kCases[0];
  DecisionMap taken;
  {
    const DecisionScope scope({.measure = true});
    run(c, {}, DType::f32);
    run(c, {}, DType::f32);
    taken = scope.taken();
  }
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken.begin()->first.substr(0, 33), "matmul m127 n131 k137 ta0 tb0 thr");
  std::string& choice = taken.begin()->second;
  choice = choice == "sgemm" ? "matmul" : "sgemm";  // another choice than the measured one: the record must be obeyed
  const std::size_t before = cpu::matmul_runs(choice);
  const DecisionScope replay({.measure = true, .known = taken, .on_measured = [](const std::string& key, const std::string&) {
                                ADD_FAILURE() << "measured " << key;
                              }});
  EXPECT_EQ(run(c, {}, DType::f32), run(c, {}, DType::f32));
  EXPECT_EQ(cpu::matmul_runs(choice), before + 2);
}

TEST(MatmulDecision, OfALargeProductIsTimedFromMemory) {
  const DecisionScope scope({.measure = true});
  const std::size_t before = cpu::cache_flushes();
  run(kCases[0], {}, DType::f32);
  EXPECT_EQ(cpu::cache_flushes(), before);
  run({1021, 1031, 61}, {}, DType::f32);
  EXPECT_GT(cpu::cache_flushes(), before);
}

TEST(MatmulDecision, IsNotAskedForBatchesAndSmallProducts) {
  const DecisionScope scope({.measure = true});
  run({7, 11, 13}, {}, DType::f32);
  cpu::matmul(random({2, 127, 137}, 0), random({2, 137, 131}, 1), Tensor::empty({2, 127, 131}), {});
  EXPECT_TRUE(scope.taken().empty());
}

// The batch has the m, n and k of a single product, whose record names an algorithm that batches and bf16 are not offered.
TEST(MatmulDecision, ARecordedSingleProductSaysNothingOfABatch) {
  DecisionMap taken;
  {
    const DecisionScope scope({.measure = true});
    run(kCases[0], {}, DType::f32);
    taken = scope.taken();
  }
  ASSERT_EQ(taken.size(), 1u);
  taken.begin()->second = "sgemm";
  std::string warnings;
  const testing::LogSinkScope sink([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::warning) warnings += text;
  });
  {
    const DecisionScope replay({.measure = true, .known = taken});
    const auto& [m, n, k] = kCases[0];
    cpu::matmul(random({2, m, k}, 0), random({2, k, n}, 1), Tensor::empty({2, m, n}), {});
    run(kCases[0], {}, DType::bf16);
    EXPECT_EQ(replay.taken(), taken);
  }
  EXPECT_EQ(warnings, "");
}

}  // namespace
}  // namespace tessera
