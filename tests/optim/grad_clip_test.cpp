#include "optim/grad_clip.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "tests/optim/model.h"

namespace tessera {
namespace {

using testing::make_model;
using testing::random_tensor;
using testing::set_gradients;
using testing::to_doubles;

double norm_of(const std::vector<NamedParameter>& parameters) {
  double sum = 0;
  for (const NamedParameter& named : parameters) {
    for (const double g : to_doubles(named.parameter->grad())) sum += g * g;
  }
  return std::sqrt(sum);
}

TEST(GradClip, ScalesToTheGlobalNorm) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto model = make_model(dtype);
    const auto parameters = named_parameters(*model);
    set_gradients(*model, 1);
    const double before = norm_of(parameters);
    EXPECT_NEAR(clip_grad_norm(parameters, 0.5).item(), before, 1e-12);
    EXPECT_NEAR(norm_of(parameters), 0.5, 1e-6);
  }
}

constexpr double kFar = 1e100;  // too large a norm to clip anything

// Sizes of whole vectors, of vectors with a remainder, and of several blocks.
TEST(GradClip, NormOfAnySizeIsThatOfAPlainLoop) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t size : {1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 97, 16'383, 16'385, 50'021}) {
      testing::Holder model;
      model.add_parameter("w", Tensor::zeros({size}, dtype));
      set_gradients(model, 3);
      const auto parameters = named_parameters(model);
      EXPECT_NEAR(clip_grad_norm(parameters, kFar).item() / norm_of(parameters), 1, 1e-12) << size;  // 50,000 roundings of 1e-16
    }
  }
}

TEST(GradClip, NormIsFiniteAsLongAsEveryGradientIs) {
  const auto model = make_model();
  const auto parameters = named_parameters(*model);
  set_gradients(*model, 1);
  parameters[0].parameter->set_grad(Tensor::full(parameters[0].parameter->value().shape(), 3e38));
  EXPECT_TRUE(std::isfinite(clip_grad_norm(parameters, kFar).item())) << "the largest floats are no Inf";
  parameters[0].parameter->grad().slice(0, 0, 1).fill(-INFINITY);
  EXPECT_FALSE(std::isfinite(clip_grad_norm(parameters, kFar).item()));
}

TEST(GradClip, LeavesSmallGradientsAlone) {
  const auto model = make_model();
  const auto parameters = named_parameters(*model);
  set_gradients(*model, 1);
  const auto before = to_doubles(parameters[0].parameter->grad());
  clip_grad_norm(parameters, 1e6);
  EXPECT_EQ(to_doubles(parameters[0].parameter->grad()), before);
}

TEST(GradClip, ScalesASharedGradientOnce) {
  const auto model = make_model();
  const auto parameters = named_parameters(*model);
  const Tensor shared = Tensor::full({3, 5}, 2);
  parameters[0].parameter->set_grad(shared);
  clip_grad_norm(parameters, 1);
  EXPECT_EQ(shared.to_vector<float>(), std::vector<float>(15, 2));
  EXPECT_NEAR(parameters[0].parameter->grad().data<float>()[0], 1 / std::sqrt(15.0), 1e-6);
}

TEST(GradClip, NormAndGradientsHaveTheSameBitsOnAnyThreadCount) {
  testing::Holder model;
  for (const std::int64_t size : {100'003, 1, 0, 16'384, 40'000, 777}) {
    model.add_parameter(str("w", size), Tensor::zeros({size}));
  }
  const auto parameters = named_parameters(model);
  const int threads = omp_get_max_threads();
  std::vector<std::vector<double>> seen;
  for (const int count : {1, 2, 3, 5}) {
    omp_set_num_threads(count);
    set_gradients(model, 9);
    std::vector<double>& bits = seen.emplace_back();
    bits.push_back(clip_grad_norm(parameters, 1).item());
    for (const NamedParameter& named : parameters) {
      const auto grad = to_doubles(named.parameter->grad());
      bits.insert(bits.end(), grad.begin(), grad.end());
    }
  }
  omp_set_num_threads(threads);
  EXPECT_NEAR(seen[0][0], std::sqrt(157'165.0), 2) << "normal values";
  for (const auto& bits : seen) EXPECT_EQ(bits, seen.front());
}

TEST(GradClip, NanReachesEveryGradientAndNoGradientIsNoNorm) {
  const auto model = make_model();
  const auto parameters = named_parameters(*model);
  EXPECT_EQ(clip_grad_norm(parameters, 1).item(), 0);
  set_gradients(*model, 1);
  parameters[0].parameter->grad().fill(std::nan(""));
  EXPECT_TRUE(std::isnan(clip_grad_norm(parameters, 1).item()));
  EXPECT_TRUE(std::isnan(to_doubles(parameters[2].parameter->grad())[0]));
}

}  // namespace
}  // namespace tessera
