// Runs every check that applies to all ops on every row of the op table. A failure names the row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/autograd/backward.h"
#include "tests/support/gradient_check.h"
#include "tests/support/guarded.h"
#include "tests/support/inputs.h"
#include "tests/support/message_of.h"
#include "tests/support/op_checks.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

constexpr std::uint64_t kSeed = 1;

// The dtypes of at most 32 bits that the row runs in.
std::vector<DType> short_dtypes(const OpCase& row) {
  return row.bf16 ? std::vector{DType::f32, DType::bf16} : std::vector{DType::f32};
}

void expect_close(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_LE(relative_error(a, b), tolerance);
}

class OpTable : public ::testing::TestWithParam<OpCase> {};

TEST_P(OpTable, ForwardMatchesReference) {
  const OpCase& row = GetParam();
  const std::vector<Tensor> exact = make_inputs(row, DType::f64, kSeed);
  const Tensor expected = row.reference(exact);
  poison_free_memory(0xff);
  expect_close(forward(row, exact), expected, 1e-12);  // a few roundings of f64, and vector functions within 4 ulp
  expect_close(forward(row, make_inputs(row, DType::f32, kSeed)), expected, row.f32_relative);
}

TEST_P(OpTable, GradientMatchesDifferences) {
  const OpCase& row = GetParam();
  EXPECT_EQ(check_gradients(row.op, make_inputs(row, DType::f64, kSeed), {.differentiable = differentiable(row)}), "");
}

TEST_P(OpTable, SingleGradientMatchesDouble) {
  const OpCase& row = GetParam();
  const auto exact = projected_gradients(row.op, make_inputs(row, DType::f64, kSeed), differentiable(row), kSeed);
  const auto single = projected_gradients(row.op, make_inputs(row, DType::f32, kSeed), differentiable(row), kSeed);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (!exact[i].defined()) continue;
    ASSERT_TRUE(single[i].defined());
    EXPECT_EQ(single[i].dtype(), DType::f32);
    expect_close(single[i], exact[i], 10 * row.f32_relative);  // chains of a few operations, each within the bound
  }
}

void expect_bf16_refused(const OpCase& row, const std::function<void()>& run) {
  const std::string refusal = message_of<DTypeError>(run);
  EXPECT_EQ(refusal.find(row.name.substr(0, row.name.find('/')) + ": "), 0u) << refusal;
  EXPECT_NE(refusal.find("bf16"), std::string::npos) << refusal;
}

// The inputs are exact in bf16. Products and sums of any length run in f32 or wider. What remains is one rounding on store, and
// the roundings that a row names.
TEST_P(OpTable, Bf16ForwardMatchesReference) {
  const OpCase& row = GetParam();
  const std::vector<Tensor> inputs = make_inputs(row, DType::bf16, kSeed);
  if (!row.bf16) {
    expect_bf16_refused(row, [&] { forward(row, inputs); });
    return;
  }
  poison_free_memory(0xff);
  const Tensor y = forward(row, inputs);
  EXPECT_EQ(y.dtype(), DType::bf16);
  expect_close(y, row.reference(widened(inputs)), row.bf16_result_roundings * kBf16Rounding + row.f32_relative);
}

// A gradient is rounded on store, and so are the values that the forward pass saved for it.
TEST_P(OpTable, Bf16GradientMatchesDouble) {
  const OpCase& row = GetParam();
  const std::vector<Tensor> inputs = make_inputs(row, DType::bf16, kSeed);
  if (!row.bf16) {
    expect_bf16_refused(row, [&] { projected_gradients(row.op, inputs, differentiable(row), kSeed); });
    return;
  }
  const auto exact = projected_gradients(row.op, widened(inputs), differentiable(row), kSeed);
  const auto rounded = projected_gradients(row.op, inputs, differentiable(row), kSeed);
  int compared = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (!exact[i].defined()) continue;
    ASSERT_TRUE(rounded[i].defined());
    EXPECT_EQ(rounded[i].dtype(), inputs[i].dtype());
    SCOPED_TRACE(str("input ", i));
    expect_close(rounded[i], exact[i], row.bf16_roundings * kBf16Rounding + 10 * row.f32_relative);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST_P(OpTable, StridedInputsGiveTheSame) {
  const OpCase& row = GetParam();
  const std::vector<Tensor> plain = make_inputs(row, DType::f64, kSeed);
  std::vector<Tensor> views;
  for (const Tensor& input : plain) views.push_back(scattered(input));
  expect_close(forward(row, views), forward(row, plain), 1e-12);
  const auto expected = projected_gradients(row.op, plain, differentiable(row), kSeed);
  const auto grads = projected_gradients(row.op, views, differentiable(row), kSeed);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (expected[i].defined()) expect_close(grads[i], expected[i], 1e-11);
  }
}

TEST_P(OpTable, IndeterminateMemoryDoesNotShow) {
  const OpCase& row = GetParam();
  for (const DType dtype : short_dtypes(row)) {
    SCOPED_TRACE(str(dtype));
    const std::vector<Tensor> inputs = make_inputs(row, dtype, kSeed);
    std::vector<Tensor> results[2];
    for (const int run : {0, 1}) {
      poison_free_memory(run == 0 ? 0xff : 0x3f);
      results[run] = projected_gradients(row.op, inputs, differentiable(row), kSeed);
      poison_free_memory(run == 0 ? 0xff : 0x3f);
      results[run].push_back(forward(row, inputs).clone());
    }
    for (std::size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(same_bytes(results[0][i], results[1][i])) << "result " << i;
  }
}

TEST_P(OpTable, InputsOffAlignmentGiveTheSame) {
  const OpCase& row = GetParam();
  std::vector<DType> dtypes = short_dtypes(row);
  dtypes.push_back(DType::f64);
  for (const DType dtype : dtypes) {
    SCOPED_TRACE(str(dtype));
    const std::vector<Tensor> plain = make_inputs(row, dtype, kSeed);
    std::vector<Tensor> moved;
    for (const Tensor& input : plain) moved.push_back(Guarded(input).tensor());
    const double tolerance = dtype == DType::f64 ? 1e-12 : row.f32_relative + (dtype == DType::bf16 ? kBf16Rounding : 0);
    expect_close(forward(row, moved), forward(row, plain), tolerance);
    const auto expected = projected_gradients(row.op, plain, differentiable(row), kSeed);
    const auto grads = projected_gradients(row.op, moved, differentiable(row), kSeed);
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (expected[i].defined()) expect_close(grads[i], expected[i], 10 * tolerance);
    }
  }
}

TEST_P(OpTable, InputsAndTheirSurroundingsAreUntouched) {
  const OpCase& row = GetParam();
  for (const DType dtype : short_dtypes(row)) {
    SCOPED_TRACE(str(dtype));
    std::vector<Guarded> guarded;
    std::vector<Tensor> inputs;
    for (const Tensor& input : make_inputs(row, dtype, kSeed)) {
      guarded.emplace_back(input);
      inputs.push_back(guarded.back().tensor());
    }
    projected_gradients(row.op, inputs, differentiable(row), kSeed);
    for (std::size_t i = 0; i < guarded.size(); ++i) EXPECT_TRUE(guarded[i].intact()) << "input " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, OpTable, ::testing::ValuesIn(all_op_cases()),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace

void PrintTo(const OpCase& row, std::ostream* out) { *out << row.name; }

}  // namespace tessera::testing
