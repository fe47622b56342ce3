// Checks every row of the op table on a GPU against the naive references in double, and against the CPU's gradients, which the
// CPU's tests compare with differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "core/autograd/backward.h"
#include "core/device/decisions.h"
#include "core/device/device_work.h"
#include "core/ops/sparse_product_cuda.h"
#include "tests/support/gpu.h"
#include "tests/support/gradient_check.h"
#include "tests/support/guarded.h"
#include "tests/support/inputs.h"
#include "tests/support/op_checks.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

constexpr std::uint64_t kSeed = 1;
// Sums run in another order than the CPU's, and vector functions are within 2 ulp.
constexpr double kDoubleError = 1e-11;

std::vector<Tensor> on(Device device, std::span<const Tensor> tensors) {
  std::vector<Tensor> moved;
  for (const Tensor& tensor : tensors) moved.push_back(tensor.to(device));
  return moved;
}

std::vector<Tensor> gradients(const OpCase& row, std::span<const Tensor> inputs) {
  return projected_gradients(row.op, inputs, differentiable(row), kSeed);
}

// The op's result and gradients. The weights are already on the GPU, because a recording cannot copy from the host.
std::vector<Tensor> results_for(const Tensor& weights, const OpCase& row, std::span<const Tensor> inputs) {
  const std::vector<bool> wanted = differentiable(row);
  std::vector<Var> vars;
  for (std::size_t i = 0; i < inputs.size(); ++i) vars.emplace_back(inputs[i], bool{wanted[i]});
  const Var y = row.op(vars);
  if (y.requires_grad()) backward(y, weights);
  std::vector<Tensor> results{y.value()};
  for (std::size_t i = 0; i < inputs.size(); ++i) results.push_back(wanted[i] ? vars[i].grad() : Tensor());
  return results;
}

void expect_close(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_LE(relative_error(a, b), tolerance);
}

// `tolerance` returns the bound for a wanted gradient.
void expect_gradients_close(std::span<const Tensor> got, std::span<const Tensor> want,
                            const std::function<double(const Tensor&)>& tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE(str("input ", i));
    ASSERT_EQ(got[i].defined(), want[i].defined());
    if (want[i].defined()) expect_close(got[i], want[i], tolerance(want[i]));
  }
}

void expect_gradients_close(std::span<const Tensor> got, std::span<const Tensor> want, double tolerance) {
  expect_gradients_close(got, want, [tolerance](const Tensor&) { return tolerance; });
}

// Fills free memory of the GPU with `byte`, so that reads before a write show.
void poison_gpu_memory(Device gpu, std::uint8_t byte) {
  std::vector<Tensor> held;
  for (std::int64_t bytes = 512; bytes <= (std::int64_t{4} << 20); bytes *= 2) {
    for (int i = 0; i < 4; ++i) {
      held.push_back(Tensor::empty({bytes}, DType::u8, gpu));
      held.back().fill(byte);
    }
  }
}

struct HalfType {
  DType dtype;
  double rounding;
};
constexpr HalfType kHalfTypes[] = {{DType::bf16, kBf16Rounding}, {DType::f16, kF16Rounding}};

// If bf16 may lose a gradient completely, so may f16.
double gradient_tolerance(const OpCase& row, double rounding) {
  return row.bf16_roundings * (row.bf16_roundings * kBf16Rounding >= 1 ? kBf16Rounding : rounding);
}

// Half a step between f16's smallest numbers, relative to the largest expected value.
double least_step(DType dtype, const Tensor& expected) {
  if (dtype != DType::f16) return 0;
  double largest = 1e-30;
  for (const double value : expected.to(DType::f64).to_vector<double>()) largest = std::max(largest, std::abs(value));
  return 0x1p-25 / largest;
}

class OpTable : public GpuTestWithParam<OpCase> {
 protected:
  void SetUp() override {
    GpuTestWithParam::SetUp();
    if (!GetParam().forced.empty()) scope_.emplace(DecisionPolicy{.forced = GetParam().forced});
  }

 private:
  std::optional<DecisionScope> scope_;
};

TEST_P(OpTable, ForwardMatchesReference) {
  const OpCase& row = GetParam();
  const std::vector<Tensor> exact = make_inputs(row, DType::f64, kSeed);
  const Tensor expected = row.reference(exact);
  poison_gpu_memory(gpu(), 0xff);
  const Tensor y = forward(row, on(gpu(), exact));
  EXPECT_EQ(y.device(), gpu());
  expect_close(y, expected, kDoubleError);
  expect_close(forward(row, on(gpu(), make_inputs(row, DType::f32, kSeed))), expected, row.f32_relative);
}

TEST_P(OpTable, GradientsMatchTheCpus) {
  const OpCase& row = GetParam();
  const std::vector<Tensor> exact = make_inputs(row, DType::f64, kSeed);
  const std::vector<Tensor> expected = gradients(row, exact);
  poison_gpu_memory(gpu(), 0xff);
  expect_gradients_close(gradients(row, on(gpu(), exact)), expected, 10 * kDoubleError);
  const std::vector<Tensor> single = make_inputs(row, DType::f32, kSeed);
  expect_gradients_close(gradients(row, on(gpu(), single)), expected, 10 * row.f32_relative);
}

TEST_P(OpTable, HalfTypesMatchDouble) {
  const OpCase& row = GetParam();
  if (!row.bf16) return;
  for (const auto& [dtype, rounding] : kHalfTypes) {
    SCOPED_TRACE(str(dtype));
    const std::vector<Tensor> inputs = make_inputs(row, dtype, kSeed);
    const Tensor y = forward(row, on(gpu(), inputs));
    EXPECT_EQ(y.dtype(), dtype);
    const Tensor expected = row.reference(widened(inputs));
    expect_close(y, expected, row.half_roundings * rounding + least_step(dtype, expected) + row.f32_relative);
    // A gradient is rounded on store, as are the values that the forward pass saved for it; a convolution's weights once more.
    const double relative = gradient_tolerance(row, rounding) + 10 * row.f32_relative;
    const auto tolerance = [&](const Tensor& want) { return relative + row.bf16_roundings * least_step(dtype, want); };
    expect_gradients_close(gradients(row, on(gpu(), inputs)), gradients(row, widened(inputs)), tolerance);
  }
}

TEST_P(OpTable, StridedAndUnalignedInputsGiveTheSame) {
  const OpCase& row = GetParam();
  const std::vector<Tensor> plain = on(gpu(), make_inputs(row, DType::f32, kSeed));
  std::vector<Tensor> views;
  std::vector<Tensor> moved;
  for (const Tensor& input : plain) {
    views.push_back(scattered(input));
    moved.push_back(Guarded(input).tensor());
  }
  const Tensor expected = forward(row, plain);
  expect_close(forward(row, views), expected, row.f32_relative);
  expect_close(forward(row, moved), expected, row.f32_relative);
  const std::vector<Tensor> grads = gradients(row, plain);
  expect_gradients_close(gradients(row, views), grads, 10 * row.f32_relative);
  expect_gradients_close(gradients(row, moved), grads, 10 * row.f32_relative);
}

TEST_P(OpTable, RunsGiveTheSameBytesWhateverMemoryHeld) {
  const OpCase& row = GetParam();
  for (const DType dtype : row.bf16 ? std::vector{DType::f32, DType::bf16} : std::vector{DType::f32}) {
    SCOPED_TRACE(str(dtype));
    const std::vector<Tensor> inputs = on(gpu(), make_inputs(row, dtype, kSeed));
    std::vector<Tensor> results[2];
    for (const int run : {0, 1}) {
      poison_gpu_memory(gpu(), run == 0 ? 0xff : 0x3f);
      results[run] = on(Device::cpu(), gradients(row, inputs));
      results[run].push_back(forward(row, inputs).to(Device::cpu()));
    }
    for (std::size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(same_bytes(results[0][i], results[1][i])) << "result " << i;
  }
}

TEST_P(OpTable, InputsAndTheirSurroundingsAreUntouched) {
  const OpCase& row = GetParam();
  for (const DType dtype : row.bf16 ? std::vector{DType::f32, DType::bf16} : std::vector{DType::f32}) {
    SCOPED_TRACE(str(dtype));
    std::vector<Guarded> guarded;
    std::vector<Tensor> inputs;
    for (const Tensor& input : make_inputs(row, dtype, kSeed)) {
      guarded.emplace_back(input.to(gpu()));
      inputs.push_back(guarded.back().tensor());
    }
    gradients(row, inputs);
    for (std::size_t i = 0; i < guarded.size(); ++i) EXPECT_TRUE(guarded[i].intact()) << "input " << i;
  }
}

// Replaying the graph of an op gives the same bytes as the op itself.
TEST_P(OpTable, CanBeRecorded) {
  const OpCase& row = GetParam();
  if (!row.recordable) return;
  const std::vector<Tensor> inputs = on(gpu(), make_inputs(row, DType::f32, kSeed));
  const Tensor weights = projection(forward(row, inputs), kSeed);
  const std::vector<Tensor> expected = results_for(weights, row, inputs);
  std::vector<Tensor> replayed;
  const auto graph = record_graph(gpu(), [&] { replayed = results_for(weights, row, inputs); });
  graph->replay();
  graph->replay();
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bytes(replayed[i], expected[i])) << "result " << i;
}

TEST_P(OpTable, AForcedWayRuns) {
  const OpCase& row = GetParam();
  if (row.forced.empty()) return;
  const std::vector<Tensor> inputs = on(gpu(), make_inputs(row, DType::f32, kSeed));
  const std::size_t before = cuda::sparse_runs(row.forced);
  const bool any = forward(row, inputs).numel() > 0;
  EXPECT_EQ(cuda::sparse_runs(row.forced), before + (any ? 1 : 0));
  gradients(row, inputs);
  // Adds the forward pass, the values' gradient and the input's gradient, whose transposed rows may share too few columns.
  const std::size_t after = cuda::sparse_runs(row.forced);
  const std::size_t least = row.forced == "sparse" ? 4 : 3;
  EXPECT_GE(after, before + (any ? least : 1));
  EXPECT_LE(after, before + (any ? 4 : 1));
}

INSTANTIATE_TEST_SUITE_P(Cuda, OpTable, ::testing::ValuesIn(all_op_cases()),
                         [](const auto& test) { return test_name(test.param); });

// Sparse products that are forced onto our own kernels; without a choice the libraries' dense products run.
std::vector<OpCase> sparse_op_cases(const std::string& way, const std::function<bool(const std::string&)>& takes) {
  std::vector<OpCase> rows;
  for (OpCase& row : dense_op_cases()) {
    if (!row.name.starts_with("sparse_") || !takes(row.name)) continue;
    row.forced = way;
    rows.push_back(std::move(row));
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(CudaSparse, OpTable,
                         ::testing::ValuesIn(sparse_op_cases("sparse", [](const std::string&) { return true; })),
                         [](const auto& test) { return test_name(test.param); });

// Masks in which eight or more rows keep the same columns.
bool has_pieces(const std::string& name) {
  for (const char* mask : {"tiles_of_16", "blocks_of_16", "blocks_of_8", "pad1_tiles", "pointwise_tiles"}) {
    if (name.find(mask) != std::string::npos) return true;
  }
  return false;
}

INSTANTIATE_TEST_SUITE_P(CudaSparsePieces, OpTable, ::testing::ValuesIn(sparse_op_cases("pieces", has_pieces)),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace

void PrintTo(const OpCase& row, std::ostream* out) { *out << row.name; }

}  // namespace tessera::testing
