// The rivals on a GPU compute what our ops compute: small shapes, with every algorithm on offer.
#include "bench/cases/cuda_cases.h"

#include <gtest/gtest.h>

#include <tuple>

#include "bench/cases/cuda_core.h"
#include "bench/cases/cuda_network.h"
#include "bench/cases/cuda_tucker.h"
#include "bench/cases/memory_cases.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/nn/cost.h"
#include "core/support/error.h"
#include "layers/models/model.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_limits.h"

namespace tessera::bench {
namespace {

using testing::GpuTest;

class CudaCases : public GpuTest {};

// measure_rotated throws if no rival agrees with our result.
void expect_measured(const RotatedCase& rotated) {
  SCOPED_TRACE(str(rotated.op, ' ', rotated.shape, ' ', rotated.pass, ' ', rotated.precision));
  const DecisionScope decisions({.measure = true});
  const Value row = measure_rotated(rotated, Device::cuda(), 2);
  EXPECT_GT(row.at("ratio").at("median").as_double(), 0);
  EXPECT_EQ(row.at("ways").as_list().size(), rotated.ours.size() - 1);
  const auto refused = static_cast<std::int64_t>(row.at("rivals_refused").as_list().size());
  EXPECT_EQ(row.at("rivals_timed").as_int() + refused, static_cast<std::int64_t>(rotated.rivals.size()));
}

TEST_F(CudaCases, ProductsAgreeInEveryPrecision) {
  for (const char* precision : {"f32", "tf32", "bf16"}) expect_measured(cuda_product_case({64, 48, 32}, precision, gpu()));
}

// One test for each precision and pass, so that shards can split them: the library takes seconds to make a shape's plans.
class CudaConvCases : public testing::GpuTestWithParam<std::tuple<const char*, ConvPass>> {};

TEST_P(CudaConvCases, ConvolutionsAgree) {
  const auto& [precision, pass] = GetParam();
  for (const ConvShape& shape : {ConvShape{2, 16, 32, 12, 3}, ConvShape{2, 32, 16, 9, 1}, ConvShape{2, 32, 32, 12, 3, 2}}) {
    expect_measured(cuda_conv_case(pass, shape, precision, gpu()));
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaConvCases,
                         ::testing::Combine(::testing::Values("f32", "bf16"),
                                            ::testing::Values(ConvPass::forward, ConvPass::backward_input,
                                                              ConvPass::backward_weight)),
                         [](const auto& test) {
                           return str(std::get<0>(test.param), '_', to_string(std::get<1>(test.param)));
                         });

TEST_F(CudaCases, AWrongRivalIsRefusedByName) {
  RotatedCase rotated = cuda_product_case({64, 48, 32}, "f32", gpu());
  RotatedSide idle = rotated.rivals.front();
  idle.name = "idle";
  idle.run = [](std::size_t) {};
  rotated.rivals.push_back(idle);
  const Value row = measure_rotated(rotated, gpu(), 2);
  EXPECT_EQ(row.at("rivals_refused").as_list().back().at("name").as_string(), "idle");
  rotated.rivals = {idle};
  EXPECT_THROW(measure_rotated(rotated, gpu(), 2), InternalError);
}

TEST_F(CudaCases, CoreConvolutionsAgreeWithTheLibrary) {
  const DecisionScope decisions({.measure = true});
  const SweptCase core = core_case(core_shapes().back(), gpu());
  EXPECT_EQ(core.rotated.ours.size(), 3u);
  EXPECT_FALSE(core.tiles.as_list().empty());
  expect_measured(core.rotated);
}

TEST_F(CudaCases, FusedTuckerConvolutionsAgreeWithThreeConvolutions) {
  const DecisionScope decisions({.measure = true});
  const SweptCase tucker = tucker_case(tucker_shapes().back(), gpu());
  ASSERT_EQ(tucker.rotated.ours.size(), 3u);
  EXPECT_EQ(tucker.rotated.rivals.size(), 2u);
  EXPECT_EQ(tucker.taken, tucker.rotated.ours.front().name);
  const Value::List& tiles = tucker.tiles.as_list();
  ASSERT_FALSE(tiles.empty());
  EXPECT_TRUE(tucker.rotated.ours[2].name.ends_with(tiles.front().at("name").as_string()));
  for (const Value& tile : tiles) {
    EXPECT_GE(tile.at("predicted_ms").as_double(), tiles.front().at("predicted_ms").as_double());
  }
  expect_measured(tucker.rotated);
}

TEST_F(CudaCases, TheFactoredNetworkAgreesWithTheDenseOneWhichHasNoKernelOfOurs) {
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  const NetworkPair networks = folded_resnet18_pair(gpu());
  const RotatedCase rotated = network_case(networks, gpu());
  rotated.rivals.front().run(0);
  EXPECT_FALSE(decisions.taken().empty());
  for (const auto& [key, choice] : decisions.taken()) {
    EXPECT_TRUE(key.ends_with(" libraries") || !key.starts_with("cuda.conv2d.")) << key;
    EXPECT_FALSE(choice.starts_with("own")) << key;
  }
  expect_measured(rotated);
}

TEST_F(CudaCases, MemoryBoundOpsRun) {
  for (const MemoryMaker& maker : memory_cases(4, gpu())) {
    const Value row = measure_memory(maker.make(), 4, {.rounds = 1, .seconds = 0, .device = gpu()});
    EXPECT_GT(row.at("ratio").at("median").as_double(), 0) << maker.op;
    EXPECT_EQ(row.at("stream").as_string(), "copy");
  }
}

TEST(CudaShapes, ThePlannerNamesAKernelOrTheReasonForTheLibrary) {
  for (const ConvShape& shape : core_shapes()) {
    const TilePick pick = core_pick(shape, kH100);
    EXPECT_EQ(pick.planned.starts_with("own "), pick.reason.empty()) << to_string(shape) << ": " << pick.planned;
    EXPECT_EQ(pick.planned == "library", !pick.reason.empty()) << to_string(shape) << ": " << pick.planned;
  }
}

TEST(CudaShapes, TheCoresAreThoseOfTheFactoredNetworks) {
  const std::vector<ConvShape> cores = core_shapes();
  ASSERT_EQ(cores.size(), 18u);
  EXPECT_EQ(to_string(cores.front()), "1x224x224x64 -> 32, 3x3");
  EXPECT_EQ(to_string(cores.back()), "1x7x7x192 -> 160, 3x3");
}

TEST(CudaShapes, TheTuckerLayersHaveTheCoresOfThePaperInside) {
  const std::vector<ConvShape> cores = core_shapes();
  const std::vector<cuda::TuckerConvShape> layers = tucker_shapes();
  ASSERT_EQ(layers.size(), cores.size());
  for (std::size_t i = 0; i < cores.size(); ++i) {
    EXPECT_EQ(layers[i].rank_in, cores[i].in);
    EXPECT_EQ(layers[i].rank_out, cores[i].out);
    EXPECT_EQ(layers[i].rows().outs, cores[i].out_size());
  }
  EXPECT_EQ(to_string(layers.front()), "1x224x224x128 -> 64 -> 32 -> 64, 3x3");
  EXPECT_EQ(to_string(layers.back()), "1x7x7x384 -> 192 -> 160 -> 320, 3x3");
}

TEST(CudaShapes, ThePlannerNamesABlockOrTheReasonForThreeConvolutions) {
  for (const cuda::TuckerConvShape& layer : tucker_shapes()) {
    const TilePick pick = tucker_pick(layer, kH100);
    EXPECT_EQ(pick.planned.starts_with("fused, "), pick.reason.empty()) << to_string(layer) << ": " << pick.planned;
    EXPECT_EQ(pick.planned == "three convolutions", !pick.reason.empty()) << to_string(layer) << ": " << pick.planned;
  }
}

// The published counts are 3.38 M parameters and 0.786 GMACs. Our MACs lack two square factors of full rank, 64 by 64 on 56x56
// pixels, which can be multiplied into the core.
TEST(CudaShapes, TheRanksGiveThePublishedSizes) {
  const Shape image{1, 224, 224, 3};
  auto network = build_model(named_model("resnet18", 1000), image);
  for (const LayerRanks& layer : resnet18_ranks()) {
    const auto& dense = dynamic_cast<const Conv2d&>(find_module(*network, layer.path));
    replace_module(network, layer.path, Tucker2Conv2d::shaped_for(dense, layer.ranks));
  }
  std::int64_t parameters = 0;
  for (const NamedParameter& named : named_parameters(*network)) parameters += named.parameter->value().numel();
  EXPECT_NEAR(static_cast<double>(parameters), 3.38e6, 0.01e6);
  EXPECT_NEAR(static_cast<double>(total_cost(*network, image).macs), 0.786e9 - 2 * 64 * 64 * 56 * 56, 0.001e9);
}

}  // namespace
}  // namespace tessera::bench
