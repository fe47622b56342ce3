#include "optim/power_sgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/accumulate.h"
#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/support/error.h"
#include "tests/optim/model.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

using testing::Holder;
using testing::random_tensor;
using testing::to_doubles;

// A matrix, a convolution weight that PowerSGD takes as [24, 60], a weight that is too small, and a bias.
std::unique_ptr<Holder> network() {
  auto model = std::make_unique<Holder>();
  model->add_parameter("matrix", random_tensor({32, 40}, DType::f32, 1));
  model->add_parameter("conv", random_tensor({24, 5, 3, 4}, DType::f32, 2));
  model->add_parameter("small", random_tensor({8, 6}, DType::f32, 3));
  model->add_parameter("bias", random_tensor({64}, DType::f32, 4), ParameterRole::bias);
  return model;
}

struct Compressor {
  explicit Compressor(std::int64_t rank = 3) : power({.rank = rank}, one_process(), parameters, 5) {}

  Parameter& parameter(std::size_t i) const { return *parameters[i].parameter; }
  // Returns the matrix's gradient after a step with these gradients.
  std::vector<double> step(const Tensor& matrix, std::uint64_t seed = 1) {
    for (const NamedParameter& entry : parameters) {
      entry.parameter->set_grad(random_tensor(entry.parameter->value().shape(), DType::f32, 10 * seed));
    }
    parameter(0).set_grad(matrix.clone());
    power.sum();
    return to_doubles(parameter(0).grad());
  }

  std::unique_ptr<Holder> model = network();
  std::vector<NamedParameter> parameters = named_parameters(*model);
  PowerSgd power;
};

Tensor of_rank(std::int64_t rank, std::uint64_t seed = 50) {
  const NoGrad no_grad;
  return matmul(Var(random_tensor({32, rank}, DType::f32, seed)), Var(random_tensor({rank, 40}, DType::f32, seed + 1))).value();
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

TEST(PowerSgd, TakesWhatIsSentWithLessThanHalfAsMuch) {
  const Compressor compressor;
  EXPECT_TRUE(compressor.power.takes(0));
  EXPECT_TRUE(compressor.power.takes(1));
  EXPECT_FALSE(compressor.power.takes(2)) << "3 (8 + 6) numbers in place of 48";
  EXPECT_FALSE(compressor.power.takes(3));
  EXPECT_FALSE(Compressor(9).power.takes(0)) << "9 (32 + 40) in place of 1280";
}

TEST(PowerSgd, AGradientOfItsRankPasses) {
  Compressor compressor;
  const Tensor gradient = of_rank(3);
  const std::vector<double> expected = to_doubles(gradient), zeros(expected.size(), 0);
  EXPECT_LT(distance(compressor.step(gradient), expected), 1e-5 * distance(expected, zeros));
  EXPECT_EQ(compressor.parameter(1).grad().shape(), (Shape{24, 5, 3, 4}));
  EXPECT_EQ(to_doubles(compressor.parameter(3).grad()), to_doubles(random_tensor({64}, DType::f32, 10))) << "as it was";
}

// Later steps add what a step leaves out: the sum of what came in equals the sum of what went out and what is left.
TEST(PowerSgd, NothingIsLost) {
  Compressor compressor;
  std::vector<double> in(32 * 40, 0), out(32 * 40, 0);
  for (std::uint64_t step = 1; step <= 6; ++step) {
    const Tensor gradient = random_tensor({32, 40}, DType::f32, 100 + step);
    const std::vector<double> given = to_doubles(gradient), got = compressor.step(gradient, step);
    EXPECT_GT(distance(given, got), 1) << "a rank of 3 does not hold it";
    for (std::size_t i = 0; i < in.size(); ++i) in[i] += given[i], out[i] += got[i];
  }
  const std::vector<double> left = to_doubles(compressor.power.state().tensors.at("error/0/matrix"));
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(out[i] + left[i], in[i], 1e-4) << i;
}

// Steps with the same gradient are a subspace iteration that converges to the gradient's best approximation of that rank.
TEST(PowerSgd, GoesOnFromTheFactorBefore) {
  Compressor compressor(1);
  const NoGrad no_grad;
  Tensor gradient = of_rank(1);
  const std::vector<double> best = to_doubles(gradient);
  accumulate(gradient, mul_scalar(Var(random_tensor({32, 40}, DType::f32, 9)), 0.3).value());
  const auto off = [&] {
    const double far = distance(compressor.step(gradient), best);
    State without = compressor.power.state();  // only the factor carries over
    without.tensors["error/0/matrix"] = Tensor::zeros({32, 40});
    compressor.power.load_state(without);
    return far;
  };
  const double first = off();
  double last = 0;
  for (int i = 0; i < 5; ++i) last = off();
  EXPECT_LT(last, 0.7 * first);
}

TEST(PowerSgd, ZerosDoNotEndIt) {
  Compressor compressor;
  compressor.step(Tensor::zeros({32, 40}));
  const std::vector<double> expected = to_doubles(of_rank(3));
  std::vector<double> sum(expected.size(), 0);
  for (int step = 0; step < 2; ++step) {
    const std::vector<double> got = compressor.step(step == 0 ? of_rank(3) : Tensor::zeros({32, 40}));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += got[i];
  }
  EXPECT_LT(distance(sum, expected), 1e-3 * distance(expected, std::vector<double>(expected.size(), 0)));
}

TEST(PowerSgd, GoesOnFromItsStateWithTheSameBytes) {
  Compressor straight, resumed;
  for (std::uint64_t step = 1; step <= 3; ++step) straight.step(random_tensor({32, 40}, DType::f32, 100 + step), step);
  resumed.power.load_state(straight.power.state());
  for (std::uint64_t step = 4; step <= 5; ++step) {
    const Tensor gradient = random_tensor({32, 40}, DType::f32, 100 + step);
    EXPECT_EQ(resumed.step(gradient, step), straight.step(gradient, step));
    EXPECT_EQ(to_doubles(resumed.parameter(1).grad()), to_doubles(straight.parameter(1).grad()));
  }
}

TEST(PowerSgd, TakesOverTheSumOfSeveralRanksErrors) {
  Compressor compressor;
  State state = compressor.power.state();
  state.meta.set("ranks", std::int64_t{2});
  for (const char* const path : {"matrix", "conv"}) {
    const Tensor error = state.tensors.at(str("error/0/", path));
    state.tensors[str("error/0/", path)] = Tensor::full(error.shape(), 1);
    state.tensors[str("error/1/", path)] = Tensor::full(error.shape(), 0.5);
  }
  compressor.power.load_state(state);
  EXPECT_EQ(to_doubles(compressor.power.state().tensors.at("error/0/matrix")), std::vector<double>(32 * 40, 1.5));
  EXPECT_FALSE(compressor.power.state().tensors.contains("error/1/matrix"));
  state.tensors["error/1/other"] = state.tensors.extract("error/1/conv").mapped();
  EXPECT_NE(message_of<IoError>([&] { compressor.power.load_state(state); }).find("no tensor 'error/1/conv'"), std::string::npos);
}

TEST(PowerSgd, FindsNaN) {
  Compressor compressor;
  const Tensor gradient = of_rank(3);
  gradient.data<float>()[7] = NAN;
  EXPECT_THROW(compressor.step(gradient), NumericError);
}

}  // namespace
}  // namespace tessera
