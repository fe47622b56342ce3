// Run by mpirun with several ranks. Each rank runs every case.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admm/projections.h"
#include "tests/admm/quadratic.h"
#include "tests/core/comm/ranks.h"

namespace tessera {
namespace {

using testing::random_matrix;
using testing::svd_config;

// Counts the projections of this rank.
class Counted final : public Constraint {
 public:
  Counted(std::unique_ptr<const Constraint> constraint, int& count) : constraint_(std::move(constraint)), count_(count) {}
  Tensor project(const Tensor& weight) const override {
#pragma omp atomic
    ++count_;
    return constraint_->project(weight);
  }

 private:
  std::unique_ptr<const Constraint> constraint_;
  int& count_;
};

// More layers than ranks, of unequal sizes; fewer layers; and none.
TEST(AdmmProjections, AreSharedOutByLayerWithTheBytesOfOneProcess) {
  omp_set_num_threads(2);
  for (const std::int64_t layers : {6, 2, 1, 0}) {
    int projected = 0;
    std::vector<ConstrainedLayer> constrained;
    std::vector<Tensor> weights;
    for (std::int64_t i = 0; i < layers; ++i) {
      const std::string path = str("layer", i);
      constrained.push_back({path, std::make_shared<Counted>(low_rank_constraint(svd_config(), {{"rank", 2}}), projected)});
      weights.push_back(random_matrix(9 + 70 * i, 350, static_cast<std::uint64_t>(i), DType::f32));
    }
    const std::vector<Tensor> alone = project_all(constrained, weights);
    EXPECT_EQ(projected, layers);
    projected = 0;
    const std::vector<Tensor> together = project_all(constrained, weights, ranks());
    ASSERT_EQ(together.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(together[i].to_vector<float>(), alone[i].to_vector<float>()) << i;
    EXPECT_LT(projected, std::max<std::int64_t>(layers, 2)) << "others did the rest";
    std::int64_t all = 0;
    for (const std::string& count : ranks().all_gather(std::to_string(projected))) all += std::stoll(count);
    EXPECT_EQ(all, layers);
  }
  omp_set_num_threads(1);
}

}  // namespace
}  // namespace tessera
