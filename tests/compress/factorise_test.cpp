#include "compress/factorise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compress/pass_runner.h"
#include "core/config/read.h"
#include "core/storage.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/sequential.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

const Shape kInput{2, 8, 8, 3};

// stem 3 -> 16, block.a 16 -> 32 (stride 2), block.point (1x1), block.b 32 -> 32, block.grouped.
std::unique_ptr<Module> network() {
  auto root = std::make_unique<Sequential>();
  root->add_child("stem", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 16, .padding = {1, 1}}));
  root->add_child("relu", std::make_unique<Relu>());
  Module& block = root->add_child("block", std::make_unique<Sequential>());
  block.add_child("a", std::make_unique<Conv2d>(Conv2dConfig{.in = 16, .out = 32, .stride = {2, 2}, .padding = {1, 1}}));
  block.add_child("point", std::make_unique<Conv2d>(Conv2dConfig{.in = 32, .out = 32, .kernel = {1, 1}}));
  block.add_child("b", std::make_unique<Conv2d>(Conv2dConfig{.in = 32, .out = 32, .padding = {1, 1}, .bias = false}));
  block.add_child("grouped", std::make_unique<Conv2d>(Conv2dConfig{.in = 32, .out = 32, .groups = 4}));
  initialize(*root, 1);
  return root;
}

FactoriseConfig config_of(const std::string& json) { return read<FactoriseConfig>(parse_json(json, "test")); }

PassReport factorise(std::unique_ptr<Module>& root, const std::string& json) {
  FactorisePass pass(config_of(json));
  return run_pass(root, pass, kInput);
}

// The weight is [64, 800] with decaying singular values, so that the approximate vectors are accurate.
TEST(Factorise, BySvdFullAndRandomised) {
  const auto error = [](const char* block) {
    auto root = std::make_unique<Sequential>();
    auto& linear = dynamic_cast<Linear&>(root->add_child("wide", std::make_unique<Linear>(LinearConfig{.in = 800, .out = 64})));
    Tensor weight = random_tensor({64, 800}, DType::f32, 3);
    for (std::int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] *= std::pow(0.95F, static_cast<float>(i / 800));
    linear.weight().set_value(weight);
    std::unique_ptr<Module> module = std::move(root);
    FactorisePass pass(config_of(str(R"({"layers": "*", "format": "svd", "ranks": {"rank": 12})", block, "}")));
    return run_pass(module, pass, {2, 800}).layers.at(0).relative_error;
  };
  const double full = error(""), randomised = error(R"(, "singular_vectors": "randomised")");
  EXPECT_GT(randomised, full);
  EXPECT_LT(randomised, 1.01 * full);
}

TEST(Factorise, ADecompositionBeyondTheMemoryLimitNamesLayerBytesAndTheWayOut) {
  const auto message = [](const char* block) {
    std::unique_ptr<Module> root = std::make_unique<Sequential>();
    root->add_child("wide", std::make_unique<Linear>(LinearConfig{.in = 900, .out = 700}));
    initialize(*root, 1);
    FactorisePass pass(config_of(str(R"({"layers": "*", "format": "svd", "ranks": {"rank": 12})", block, "}")));
    const std::size_t limit = memory_stats(Device::cpu()).limit;
    set_memory_limit(Device::cpu(), memory_stats(Device::cpu()).in_use + 30'000'000);
    std::string said = "nothing";
    try {
      run_pass(root, pass, {2, 900});
    } catch (const OutOfMemoryError& error) {
      said = error.what();
    }
    set_memory_limit(Device::cpu(), limit);
    return said;
  };
  const std::string said = message("");
  // 8 (2 m n + 2 (m + n) k + 4 k^2) bytes
  EXPECT_TRUE(
      said.starts_with("layer 'wide' (singular_vectors: randomised needs less): svd of [700, 900] needs 43680000 bytes, "))
      << said;
  EXPECT_EQ(message(R"(, "singular_vectors": "randomised")"), "nothing");
}

TEST(Factorise, ReachesTheMacsAskedForOverTheMatchedLayers) {
  auto root = network();
  const PassReport report = factorise(root, R"({"layers": "block.[ab]", "ranks": {"macs": 0.4}})");
  ASSERT_EQ(report.layers.size(), 2u);
  std::int64_t before = 0, after = 0;
  for (const LayerReport& layer : report.layers) {
    EXPECT_EQ(layer.decision, "factored");
    EXPECT_EQ(layer.kind_after, "tucker2_conv2d");
    EXPECT_EQ(layer.ranks_asked, "macs 0.4 per matched");
    EXPECT_GT(layer.relative_error, 0.0);
    EXPECT_LT(layer.relative_error, 1.0);
    before += layer.macs_before;
    after += layer.macs_after;
  }
  EXPECT_LE(static_cast<double>(after), 0.4 * static_cast<double>(before));
  EXPECT_GT(static_cast<double>(after), 0.37 * static_cast<double>(before));
  EXPECT_EQ(report.before.macs - report.after.macs, before - after);
  EXPECT_EQ(find_module(*root, "block.a").kind(), "tucker2_conv2d");
  EXPECT_EQ(find_module(*root, "stem").kind(), "conv2d");
}

// Ranks, shapes and costs are equal to those of the decomposition.
TEST(Factorise, ZerosDifferFromTheDecompositionInValuesAndErrorsAlone) {
  for (const char* ranks : {R"({"out": 8, "in": 16})", R"({"macs": 0.4})", R"({"params": 0.3})", R"({"energy": 0.7})"}) {
    SCOPED_TRACE(ranks);
    const FactoriseConfig config = config_of(str(R"({"layers": "block.*", "ranks": )", ranks, "}"));
    const auto rewritten = [&](Values values) {
      std::unique_ptr<Module> root = network();
      FactorisePass pass(config, values);
      PassReport report = run_pass(root, pass, kInput);
      for (LayerReport& layer : report.layers) {
        EXPECT_EQ(layer.relative_error == 0, !layer.ranks || values == Values::zeros) << layer.path;
        layer.relative_error = 0;
      }
      return to_json(write(report)) + to_json(describe(*root));
    };
    EXPECT_EQ(rewritten(Values::zeros), rewritten(Values::decomposed));
  }
}

TEST(Factorise, ZerosAskForFiniteWeightsToo) {
  auto root = network();
  find_module(*root, "block.b").parameter("weight").set_value(Tensor::full({32, 3, 3, 32}, NAN));
  FactorisePass pass(config_of(R"({"layers": "block.b", "ranks": {"out": 8, "in": 8}})"), Values::zeros);
  EXPECT_EQ(message_of<NumericError>([&] { run_pass(root, pass, kInput); }), "layer 'block.b': the weight contains NaN or Inf");
}

TEST(Factorise, ReportsWhatItLeavesDense) {
  auto root = network();
  const PassReport report = factorise(root, R"({"layers": ["block.*"], "ranks": {"out": 8, "in": 8}})");
  ASSERT_EQ(report.layers.size(), 4u);
  EXPECT_EQ(report.layers[0].path, "block.a");
  EXPECT_EQ(*report.layers[0].ranks, (Ranks{{"out", 8}, {"in", 8}}));
  EXPECT_EQ(report.layers[1].reason, "has a 1x1 kernel; tucker2 needs a larger one");
  EXPECT_EQ(report.layers[1].decision, "dense");
  EXPECT_EQ(report.layers[1].macs_after, report.layers[1].macs_before);
  EXPECT_EQ(report.layers[3].reason, "has 4 groups; tucker2 needs 1");
}

TEST(Factorise, KeepsTheWeightEnergyAskedFor) {
  auto root = network();
  const PassReport report = factorise(root, R"({"layers": "block.b", "ranks": {"energy": 0.7}})");
  const LayerReport& layer = report.layers.at(0);
  ASSERT_EQ(layer.decision, "factored") << layer.reason;
  EXPECT_LE(layer.relative_error * layer.relative_error, 2 * 0.3);  // each mode discards at most 0.3 of the energy
}

TEST(Factorise, AFactoredNetworkStillRuns) {
  auto root = network();
  factorise(root, R"({"layers": "*", "ranks": {"macs": 0.5}, "decomposition": {"iterations": 0}})");
  const Var x(random_tensor(kInput, DType::f32));
  EXPECT_EQ(root->forward(x, {}).shape(), root->output_shape(kInput));
}

TEST(Factorise, MessagesNameTheSelectorOrTheLayer) {
  auto root = network();
  EXPECT_EQ(message_of<ConfigError>([&] {
              factorise(root, R"({"layers": "blok.a", "ranks": {"macs": 0.4}})");
            }).find("selector 'blok.a' matches no layer; nearest: block.a"),
            0u);
  EXPECT_EQ(message_of<ConfigError>([&] { factorise(root, R"({"layers": "relu", "ranks": {"macs": 0.4}})"); }),
            "factorise: layers \"relu\" match no conv2d; matched: relu");
  EXPECT_EQ(message_of<ConfigError>([&] { factorise(root, R"({"layers": "block.a", "ranks": {"out": 8, "in": 17}})"); }),
            "layer 'block.a': in rank is 17, the mode has size 16; legal range is 1..16");
  EXPECT_EQ(find_module(*root, "block.a").kind(), "conv2d");
}

TEST(Factorise, TheLastRankRuleThatMatchesHolds) {
  auto root = network();
  const PassReport report = factorise(root, R"({"layers": ["stem", "block.[ab]"], "ranks": [
    {"layers": "*", "macs": 0.5}, {"layers": ["stem", "block.b"], "out": 4, "in": 2},
    {"layers": "block.b", "out": 8, "in": 6}]})");
  ASSERT_EQ(report.layers.size(), 3u);
  EXPECT_EQ(*report.layers[0].ranks, (Ranks{{"out", 4}, {"in", 2}}));
  EXPECT_EQ(report.layers[0].ranks_asked, "out 4 in 2");
  EXPECT_EQ(*report.layers[2].ranks, (Ranks{{"out", 8}, {"in", 6}}));
  // The fraction holds for the one layer without explicit ranks.
  const LayerReport& a = report.layers[1];
  EXPECT_EQ(a.ranks_asked, "macs 0.5 per matched");
  EXPECT_LE(static_cast<double>(a.macs_after), 0.5 * static_cast<double>(a.macs_before));
  EXPECT_GT(static_cast<double>(a.macs_after), 0.45 * static_cast<double>(a.macs_before));
}

TEST(Factorise, OneRuleForAllIsTheBlock) {
  auto one = network();
  auto listed = network();
  const PassReport block = factorise(one, R"({"layers": "block.*", "ranks": {"params": 0.6}})");
  const PassReport list = factorise(listed, R"({"layers": "block.*", "ranks": [{"layers": "*", "params": 0.6}]})");
  ASSERT_EQ(list.layers.size(), block.layers.size());
  for (std::size_t i = 0; i < list.layers.size(); ++i) EXPECT_EQ(list.layers[i].ranks, block.layers[i].ranks);
}

TEST(Factorise, EveryRankRuleMustHoldSomewhereAndEveryLayerNeedsOne) {
  const auto fault = [](const std::string& ranks) {
    auto root = network();
    return message_of<ConfigError>([&] { factorise(root, str(R"({"layers": "block.[ab]", "ranks": )", ranks, "}")); });
  };
  EXPECT_EQ(fault(R"([{"layers": "block.?", "macs": 0.5}, {"layers": "stem", "macs": 0.5}])"),
            "selector 'stem' matches no layer; nearest: block.a, block.b");
  EXPECT_EQ(fault(R"([{"layers": "block.a", "macs": 0.5}])"),
            "no rule covers 'block.b'; add a rule for it, or match fewer layers");
  EXPECT_EQ(fault(R"([{"layers": "block.a", "macs": 0.4}, {"layers": "*", "macs": 0.5}])"),
            "later rules take every layer that \"block.a\" matches; the last rule that matches a layer holds");
}

TEST(Factorise, RankRulesAreReadAndWrittenAsTheyStand) {
  const std::string text = R"([{"layers":"block.a","macs":0.5,"per":"layer","multiple_of":1},)"
                           R"({"layers":["block.b"],"out":4,"in":2,"per":"matched","multiple_of":1}])";
  const FactoriseConfig config = config_of(R"({"layers": "block.[ab]", "ranks": )" + text + "}");
  ASSERT_EQ(config.rank_rules.size(), 2u);
  const Value written = write(config);
  EXPECT_EQ(to_json(written.at("ranks")).find(R"([{"layers":"block.a",)"), 0u) << to_json(written);
  EXPECT_EQ(written, write(read<FactoriseConfig>(written)));
  EXPECT_EQ(read<FactoriseConfig>(written).rank_rules[1].ranks.explicit_ranks.at(0).value, 4);
  EXPECT_TRUE(write(config_of(R"({"layers": "*", "ranks": {"macs": 0.5}})")).at("ranks").is_map());
}

TEST(Factorise, RankRulesAreReadStrictly) {
  const auto fault = [](const std::string& ranks) {
    return message_of<ConfigError>([&] { config_of(str(R"({"layers": "*", "ranks": )", ranks, "}")); });
  };
  EXPECT_EQ(fault("[]"), "test: ranks: is an empty list; needs a rule");
  EXPECT_EQ(fault(R"([{"macs": 0.5}])"), "test: ranks[0].layers: required key is missing");
  EXPECT_EQ(fault(R"([{"layers": "a", "macs": 0.5, "mac": 0.5}])"), "test: ranks[0].mac: unknown key; did you mean 'macs'?");
  EXPECT_EQ(fault(R"([{"layers": "a", "macs": 0.5, "energy": 0.5}])"),
            "test: ranks[0]: give exactly one of explicit ranks, params, macs, energy, error, vbmf");
  EXPECT_EQ(fault(R"([{"layers": "a", "macs": 0.5, "per": "network"}])"),
            "test: ranks[0].per: a rule's fraction is per layer or matched; network counts the layers of other rules");
  EXPECT_EQ(fault(R"([{"layers": 3, "macs": 0.5}])"), "test: ranks[0].layers: needs a selector or a list of selectors");
}

TEST(Factorise, ConfigRefusesWhatItCannotDo) {
  EXPECT_NE(message_of<ConfigError>([] { config_of(R"({"layers": 3, "ranks": {"macs": 0.4}})"); }).find("list of selectors"),
            std::string::npos);
  const auto keep = [] { config_of(R"({"layers": "*", "ranks": {"macs": 0.4}, "keep": "slower"})"); };
  EXPECT_NE(message_of<ConfigError>(keep).find("faster"), std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { config_of(R"({"ranks": {"macs": 0.4}})"); }).find("layers"), std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] { config_of(R"({"layers": "*", "rnaks": {"macs": 0.4}})"); }).find("rnaks"),
            std::string::npos);
}

TEST(Factorise, ASecondFormatHoldsPointwiseConvolutionsAndLinearLayers) {
  auto root = network();
  static_cast<Sequential&>(find_module(*root, "block"))
      .add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 32, .out = 24}));
  initialize(*root, 1);
  const PassReport report = factorise(root, R"({"layers": "block.*", "format": "svd", "ranks": {"rank": 6}})");
  ASSERT_EQ(report.layers.size(), 5u);
  EXPECT_EQ(report.layers[0].reason, "has a 3x3 kernel; svd needs 1x1");
  EXPECT_EQ(report.layers[1].kind_after, "svd_conv2d");
  EXPECT_EQ(*report.layers[1].ranks, (Ranks{{"rank", 6}}));
  EXPECT_GT(report.layers[1].relative_error, 0.0);
  EXPECT_EQ(report.layers[4].kind_after, "svd_linear");
  EXPECT_EQ(root->forward(Var(random_tensor(kInput, DType::f32)), {}).shape(), root->output_shape(kInput));
}

// The layers of this format run the dense convolution on a composed weight.
TEST(Factorise, WhereRanksLowerNoMacsParametersDecide) {
  for (const char* ranks : {R"({"r1": 6, "r2": 12})", R"({"params": 0.4})", R"({"energy": 0.7})"}) {
    SCOPED_TRACE(ranks);
    auto root = network();
    const PassReport report = factorise(root, str(R"({"layers": "block.[ab]", "format": "tt_garipov", "ranks": )", ranks, "}"));
    ASSERT_EQ(report.layers.size(), 2u);
    for (const LayerReport& layer : report.layers) {
      EXPECT_EQ(layer.decision, "factored") << layer.reason;
      EXPECT_EQ(layer.kind_after, "tt_garipov_conv2d");
      EXPECT_EQ(layer.macs_after, layer.macs_before);
      EXPECT_LT(layer.parameters_after, layer.parameters_before);
    }
    EXPECT_EQ(root->forward(Var(random_tensor(kInput, DType::f32)), {}).shape(), root->output_shape(kInput));
  }
  auto root = network();
  const PassReport whole = factorise(root, R"({"layers": "block.b", "format": "tt_garipov", "ranks": {"energy": 1.0}})");
  EXPECT_EQ(whole.layers.at(0).decision, "dense");
  EXPECT_EQ(whole.layers.at(0).reason, "factored parameters 13393 at ranks r1 9 r2 64 are not below dense 9216");
}

TEST(Factorise, MacsAreNotAskedOfRanksThatDoNotLowerThem) {
  const auto fault = [](const std::string& ranks) {
    return message_of<ConfigError>([&] { config_of(str(R"({"layers": "*", "format": "tt_garipov", "ranks": )", ranks, "}")); });
  };
  const std::string rule = "tt_garipov lowers the MACs of no conv2d; ask for params, energy, error, vbmf or explicit ranks";
  EXPECT_EQ(fault(R"({"macs": 0.5})"), "test: ranks: " + rule);
  EXPECT_EQ(fault(R"([{"layers": "*", "params": 0.5}, {"layers": "a", "macs": 0.5}])"), "test: ranks[1]: " + rule);
  EXPECT_EQ(fault(R"({"params": 0.5})"), "");
}

TEST(Factorise, RanksAndOptionsAreThoseOfTheFormat) {
  const auto fault = [](const std::string& json) { return message_of<ConfigError>([&] { config_of(json); }); };
  EXPECT_EQ(fault(R"({"layers": "*", "format": "svd", "ranks": {"out": 3, "in": 3}})"),
            "test: ranks: svd has no rank 'out'; it has: rank");
  EXPECT_EQ(fault(R"({"layers": "*", "ranks": [{"layers": "*", "macs": 0.4}, {"layers": "a", "out": 3}]})"),
            "test: ranks[1]: explicit ranks of tucker2 name all of: out, in; e.g. {out: 32, in: 64}");
  EXPECT_EQ(fault(R"({"layers": "*", "format": "svd", "ranks": {"rank": 3}, "decomposition": {}})"),
            "test: decomposition: svd does not sweep over its factors; leave it out");
  EXPECT_EQ(fault(R"({"layers": "*", "format": "cp", "ranks": {"rank": 3}, "singular_vectors": "randomised"})"),
            "test: singular_vectors: cp has no randomised decomposition; leave it out");
  EXPECT_EQ(fault(R"({"layers": "*", "format": "svd", "ranks": {"rank": 3}, "modes": {}})"),
            "test: modes: svd does not split channels; leave it out");
  EXPECT_EQ(fault(R"({"layers": "*", "format": "tt", "ranks": {"macs": 0.5}, "modes": {"out": [4, 4], "in": [4]}})"),
            "test: modes.in: takes two to four sizes\ntest: modes.in: has another number of sizes than out");
  for (const char* count : {"2", "3"}) {
    EXPECT_EQ(fault(str(R"({"layers": "*", "format": "tt", "ranks": {"macs": 0.5}, "modes": {"count": )", count,
                        R"(, "out": [4, 4], "in": [4, 2]}})")),
              "test: modes.count: is the number of sizes; leave it out");
  }
  EXPECT_EQ(
      fault(R"({"layers": "*", "format": "tt", "ranks": {"r1": 3, "r3": 3}})"),
      "test: ranks: explicit ranks of tt name the first of: r1, r2, r3, r4, r5, r6; e.g. {r1: 4, r2: 16, r3: 16, r4: 16, r5: 16, "
      "r6: 4}");
}

}  // namespace
}  // namespace tessera::testing
