#include "admm/projections.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <limits>

#include "core/linalg/relative_error.h"
#include "core/support/error.h"
#include "tests/admm/quadratic.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

using testing::random_matrix;
using testing::svd_config;

Tensor random_kernel(const Shape& shape, std::uint64_t seed) {
  const Tensor x = Tensor::empty(shape);
  fill_normal(x, RngStream(seed, "test", "kernel"), 0, 1);
  return x;
}

struct Layers {
  std::vector<ConstrainedLayer> constrained;
  std::vector<Tensor> weights;

  void add(const std::string& format, const Ranks& ranks, const Tensor& weight) {
    LowRankConfig config;
    config.format = format;
    constrained.push_back({str("layer", constrained.size()), low_rank_constraint(config, ranks)});
    weights.push_back(weight);
  }
};

Layers one_of_each() {
  Layers layers;
  layers.add("svd", {{"rank", 4}}, random_matrix(31, 17, 1, DType::f32));
  layers.add("tucker2", {{"out", 4}, {"in", 3}}, random_kernel({12, 3, 3, 8}, 2));
  layers.add("tt", {{"r1", 2}, {"r2", 4}, {"r3", 4}, {"r4", 2}}, random_kernel({12, 3, 3, 8}, 3));
  layers.add("spatial_svd", {{"rank", 5}}, random_kernel({9, 3, 3, 7}, 4));
  layers.add("cp", {{"rank", 3}}, random_kernel({6, 3, 3, 5}, 5));
  layers.add("svd", {{"rank", 1}}, random_matrix(3, 3, 6, DType::f32));
  return layers;
}

TEST(AdmmProjections, GiveTheSameBytesOnAnyThreadCount) {
  const Layers layers = one_of_each();
  const int before = omp_get_max_threads();
  std::vector<std::vector<float>> alone;
  for (std::size_t i = 0; i < layers.weights.size(); ++i) {
    omp_set_num_threads(1);
    alone.push_back(layers.constrained[i].constraint->project(layers.weights[i]).to_vector<float>());
  }
  for (const int threads : {1, 2, 3, 7}) {
    omp_set_num_threads(threads);
    const std::vector<Tensor> all = project_all(layers.constrained, layers.weights);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].to_vector<float>(), alone[i]) << layers.constrained[i].path << " on " << threads << " threads";
    }
  }
  omp_set_num_threads(before);
}

TEST(AdmmProjections, LieInTheConstraint) {
  const Layers layers = one_of_each();
  const std::vector<Tensor> once = project_all(layers.constrained, layers.weights);
  const std::vector<Tensor> twice = project_all(layers.constrained, once);
  for (std::size_t i = 0; i < once.size(); ++i) {
    SCOPED_TRACE(layers.constrained[i].path);
    EXPECT_EQ(once[i].shape(), layers.weights[i].shape());
    EXPECT_GT(linalg::relative_error(once[i], layers.weights[i]), 0.05);
    EXPECT_LT(linalg::relative_error(twice[i], once[i]), i == 4 ? 0.05 : 1e-5);  // cp starts anew each time
  }
}

// Every other choice of three elements has a larger distance.
TEST(AdmmProjections, TopKIsTheNearestWeightOfSoManyElements) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor weight = random_matrix(2, 5, 7, dtype);
    const Tensor projected = top_k_constraint(3)->project(weight);
    const Tensor wide = weight.to(DType::f64);
    double least = std::numeric_limits<double>::infinity();
    for (int a = 0; a < 10; ++a) {
      for (int b = a + 1; b < 10; ++b) {
        for (int c = b + 1; c < 10; ++c) {
          double distance = 0;
          for (int i = 0; i < 10; ++i) {
            if (i != a && i != b && i != c) distance += wide.data<double>()[i] * wide.data<double>()[i];
          }
          least = std::min(least, distance);
        }
      }
    }
    EXPECT_NEAR(linalg::distance(projected, weight), std::sqrt(least), 1e-6);
    EXPECT_EQ(linalg::distance(top_k_constraint(3)->project(projected), projected), 0);
    EXPECT_EQ(projected.dtype(), dtype);
  }
  const Tensor equal = Tensor::full({4}, -2.0, DType::f32);
  EXPECT_EQ(top_k_constraint(2)->project(equal).to_vector<float>(), (std::vector<float>{-2, -2, 0, 0}))
      << "the first of equal ones";
  EXPECT_EQ(linalg::distance(top_k_constraint(9)->project(equal), equal), 0);
  EXPECT_EQ(linalg::norm(top_k_constraint(0)->project(equal)), 0);
}

TEST(AdmmProjections, NameTheLayerThatIsNoNumber) {
  Layers layers = one_of_each();
  layers.weights[3].data<float>()[11] = std::numeric_limits<float>::quiet_NaN();
  const std::string message = message_of<NumericError>([&] { project_all(layers.constrained, layers.weights); });
  EXPECT_TRUE(message.starts_with("admm: layer 'layer3': ")) << message;
}

TEST(AdmmProjections, OfNoneAreNone) { EXPECT_TRUE(project_all({}, {}).empty()); }

}  // namespace
}  // namespace tessera
