#include "bench/cases/sparse_network.h"

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

TEST(SparseNetworks, AreChosenByTheirText) {
  EXPECT_EQ(sparse_networks("").size(), 3u);
  const std::vector<SparseNetwork> one = sparse_networks("unstructured 1x1 of mobilenet_v1 32x224x224x3 inference");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one.front().batch, 32);
  EXPECT_EQ(one.front().target, 2.0);
  const std::vector<SparseNetwork> training = sparse_networks("resnet18");
  ASSERT_EQ(training.size(), 1u);
  EXPECT_EQ(training.front().phase, Phase::training);
  EXPECT_TRUE(sparse_networks("no such network").empty());
}

// The smallest network, end to end. Its outputs are compared with the dense network's before anything is timed.
TEST(SparseNetworks, ARowSaysWhatWasMeasured) {
  const Value row = measure_sparse_network(sparse_networks("mobilenet_v1 1x").front(), 1);
  EXPECT_NEAR(row.at("density").as_double(), 0.1, 1e-4);
  EXPECT_EQ(row.at("layers").as_int(), 13);
  EXPECT_EQ(row.at("phase").as_string(), "forward");
  EXPECT_GT(row.at("factored").at("ms").at("median").as_double(), 0);
  EXPECT_GT(row.at("rival").at("ms").at("median").as_double(), 0);
  EXPECT_LE(row.at("agreement").as_double(), 1e-3);
}

}  // namespace
}  // namespace tessera::bench
