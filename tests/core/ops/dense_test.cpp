// Checks every row of the case tables of products, pooling and normalisation: values, gradients, repeatability.
#include <cmath>

#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/cpu/onednn.h"
#include "core/rng.h"
#include "tests/support/op_cases.h"
#include "tests/support/relative_error.h"

namespace tessera {
namespace {

using testing::OpCase;

Tensor random(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape, DType::f64);
  fill_uniform(x, RngStream(11, "dense_test", "values"), -1, 1, index);
  return x;
}

std::vector<Tensor> values_of(const OpCase& c) {
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) values.push_back(random(c.inputs[i].shape, i));
  return values;
}

struct Outcome {
  Tensor y;
  std::vector<Tensor> grads;
};

// Runs forward, and backward with the gradient `grad_y`, on inputs converted to dtype.
Outcome run(const OpCase& c, const std::vector<Tensor>& values, DType dtype) {
  std::vector<Var> inputs;
  for (const Tensor& value : values) inputs.emplace_back(value.to(dtype), true);
  const Var y = c.op(inputs);
  backward(y, random(y.shape(), 99).to(dtype));
  Outcome result{y.value(), {}};
  for (const Var& input : inputs) result.grads.push_back(input.grad());
  return result;
}

double projected(const OpCase& c, const std::vector<Tensor>& values) {
  std::vector<Var> inputs;
  for (const Tensor& value : values) inputs.emplace_back(value);
  const std::vector<double> y = c.op(inputs).value().to_vector<double>();
  const std::vector<double> weights = random(c.op(inputs).shape(), 99).to_vector<double>();
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * weights[i];
  return sum;
}

class DenseOp : public ::testing::TestWithParam<OpCase> {};

TEST_P(DenseOp, ForwardMatchesReference) {
  const OpCase& c = GetParam();
  const std::vector<Tensor> values = values_of(c);
  const Tensor expected = c.reference(values);
  EXPECT_LT(relative_error(run(c, values, DType::f64).y, expected), 1e-12);
  EXPECT_LT(relative_error(run(c, values, DType::f32).y, expected), c.f32_relative);
}

TEST_P(DenseOp, GradientMatchesCentralDifferences) {
  const OpCase& c = GetParam();
  const std::vector<Tensor> values = values_of(c);
  const Outcome analytic = run(c, values, DType::f64);
  constexpr double kStep = 1e-5;
  for (std::size_t k = 0; k < values.size(); ++k) {
    // A random direction replaces single elements: one wrong element shows with probability 1, at the cost of two forwards.
    const Tensor direction = random(values[k].shape(), 50 + k);
    const auto moved = [&](double step) {
      std::vector<Tensor> at = values;
      at[k] = values[k].clone();
      for (std::int64_t i = 0; i < at[k].numel(); ++i) at[k].data<double>()[i] += step * direction.data<double>()[i];
      return projected(c, at);
    };
    double expected = 0;
    double magnitude = 1;
    for (std::int64_t i = 0; i < direction.numel(); ++i) {
      const double term = analytic.grads[k].data<double>()[i] * direction.data<double>()[i];
      expected += term;
      magnitude += std::abs(term);
    }
    EXPECT_NEAR((moved(kStep) - moved(-kStep)) / (2 * kStep), expected, 1e-6 * magnitude) << "input " << k;
  }
}

TEST_P(DenseOp, SinglePrecisionGradientMatchesDouble) {
  const OpCase& c = GetParam();
  const std::vector<Tensor> values = values_of(c);
  const Outcome single = run(c, values, DType::f32);
  const Outcome full = run(c, values, DType::f64);
  // Rounding the inputs can change the winner of a maximum only if two values are within 1e-7; none of these are.
  for (std::size_t k = 0; k < values.size(); ++k)
    EXPECT_LT(relative_error(single.grads[k], full.grads[k]), 2e-5) << "input " << k;
}

TEST_P(DenseOp, RepeatsBitForBitAndBuildsNothingTheSecondTime) {
  const OpCase& c = GetParam();
  const std::vector<Tensor> values = values_of(c);
  const Outcome first = run(c, values, DType::f32);
  const std::size_t built = cpu::onednn::primitives_built();
  const Outcome second = run(c, values, DType::f32);
  EXPECT_EQ(cpu::onednn::primitives_built(), built);
  EXPECT_EQ(first.y.to_vector<float>(), second.y.to_vector<float>());
  for (std::size_t k = 0; k < values.size(); ++k) {
    EXPECT_EQ(first.grads[k].to_vector<float>(), second.grads[k].to_vector<float>());
  }
}

std::string test_name(const ::testing::TestParamInfo<OpCase>& info) {
  std::string name = info.param.name;
  for (char& letter : name) {
    if (letter == '/') letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Products, DenseOp, ::testing::ValuesIn(testing::dense_op_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Pooling, DenseOp, ::testing::ValuesIn(testing::pool_op_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Normalisation, DenseOp, ::testing::ValuesIn(testing::norm_op_cases()), test_name);

}  // namespace
}  // namespace tessera
