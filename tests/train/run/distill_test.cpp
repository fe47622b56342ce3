// Compares the loss of a distilling stage with its formula.
#include "train/run/distill.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/backward.h"
#include "layers/linear.h"
#include "tests/optim/model.h"

namespace tessera::testing {
namespace {

// softmax(row / temperature), computed in double.
std::vector<double> softened(const Tensor& scores, std::int64_t row, double temperature) {
  std::vector<double> p;
  double sum = 0;
  for (std::int64_t k = 0; k < scores.dim(1); ++k) {
    p.push_back(std::exp(scores.slice(0, row, row + 1).slice(1, k, k + 1).item() / temperature));
    sum += p.back();
  }
  for (double& each : p) each /= sum;
  return p;
}

TEST(Distill, TheLossIsHintons) {
  const std::int64_t samples = 5, classes = 7;
  LinearConfig config;
  config.in = 3;
  config.out = classes;
  Linear teacher(config);
  initialize(teacher, 3);
  const Tensor x = random_tensor({samples, 3}, DType::f32, 1);
  const Var scores(random_tensor({samples, classes}, DType::f32, 2), true);
  const double temperature = 2.5, weight = 0.3, own = 1.75;
  DistillConfig block;
  block.temperature = temperature;
  block.weight = weight;
  Distill distill(block, teacher, DType::f32);
  const Var loss = distill.loss(Var(Tensor::full({}, own, DType::f32)), scores, std::vector<NamedTensor>{{"x", x}});

  const Tensor taught = teacher(Var(x), Context{}).value();
  double divergence = 0;
  std::vector<std::vector<double>> slopes;
  for (std::int64_t n = 0; n < samples; ++n) {
    const std::vector<double> p = softened(taught, n, temperature), q = softened(scores.value(), n, temperature);
    for (std::size_t k = 0; k < p.size(); ++k) divergence += p[k] * std::log(p[k] / q[k]) / static_cast<double>(samples);
    std::vector<double>& slope = slopes.emplace_back();
    for (std::size_t k = 0; k < p.size(); ++k)
      slope.push_back(weight * temperature * (q[k] - p[k]) / static_cast<double>(samples));
  }
  EXPECT_NEAR(loss.value().item(), (1 - weight) * own + weight * temperature * temperature * divergence, 1e-5);

  backward(loss);
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t k = 0; k < classes; ++k) {
      const double got = scores.grad().slice(0, n, n + 1).slice(1, k, k + 1).item();
      EXPECT_NEAR(got, slopes[static_cast<std::size_t>(n)][static_cast<std::size_t>(k)], 1e-6);
    }
  }
  for (const NamedParameter& entry : named_parameters(teacher))
    EXPECT_FALSE(entry.parameter->grad().defined()) << "is not trained";
}

}  // namespace
}  // namespace tessera::testing
