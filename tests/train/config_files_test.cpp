// Networks of the experiment files in configs/ against published sizes.
#include <gtest/gtest.h>

#include "layers/models/model.h"
#include "tests/support/scopes.h"
#include "train/experiment.h"

namespace tessera::testing {
namespace {

Cost cost_of(const std::string& file) {
  const VariableScope data("TESSERA_DATA", "/nowhere");
  const Shape image{1, 32, 32, 3};
  ModelConfig model = load_experiment(str(TESSERA_CONFIGS, "/", file)).config.model;
  model.classes = 10;
  return total_cost(*build_model(model, image), image);
}

// Garipov et al. 2016: a network of 557 thousand parameters, 3.23 times fewer with trains. Convolutions 554,688, six batch norms
// 1,280, the linear layer 1,280.
TEST(ConfigFiles, SixConvolutionsHaveThePublishedSizes) {
  for (const char* length : {"", "_full"}) {
    const Cost dense = cost_of(str("cifar10/garipov_dense", length, ".yaml"));
    const Cost train = cost_of(str("cifar10/garipov_tt", length, ".yaml"));
    EXPECT_EQ(dense.parameters, 557248);
    EXPECT_EQ(train.parameters, 172518);
    EXPECT_EQ(dense.macs, train.macs);
  }
}

}  // namespace
}  // namespace tessera::testing
