// Which weights are pruned, and how many elements of each stay.
#include "compress/prune/targets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "compress/patterns/builtin.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sparse_linear.h"
#include "layers/tucker2_conv2d.h"
#include "tests/compress/prune/pruned_network.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"

namespace tessera::testing {
namespace {

TEST_F(Pruning, LeavesOutTheFirstConvolutionTheLastLinearLayerAndNorms) {
  const Texts all = paths(config());
  EXPECT_EQ(all.size(), 4u) << "two convolutions and two factors";
  EXPECT_EQ(all.front(), "wide.weight");
  EXPECT_EQ(all.at(1), "narrow.weight");
  EXPECT_TRUE(all.back().starts_with("factored."));
  PruneConfig asked = config();
  asked.layers = Value("stem");
  EXPECT_EQ(paths(asked), (Texts{"stem.weight"}));
  asked.layers = Value("steam");
  std::vector<BlockProblem> problems;
  EXPECT_TRUE(pruned_weights(asked, *model_, problems).empty());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "layers");
  EXPECT_NE(problems[0].message.find("stem"), std::string::npos) << problems[0].message;
  asked.layers = Value("norm");
  EXPECT_NE(message_of<ConfigError>([&] { Prune(asked, *model_, kStage, {.seed = 1}); }).find("layers"), std::string::npos);
}

TEST_F(Pruning, TellsWhatItLeavesOut) {
  EXPECT_EQ(left_out(config(), *model_), (Texts{"stem is the first convolution", "fc is the last linear layer"}));
  PruneConfig asked = config();
  asked.pattern.pattern = "block";
  asked.pattern.block = Extent{8, 8};
  asked.layers = parse_json(R"(["wide", "narrow"])", "layers");
  std::string line;
  const LogSinkScope sink([&](LogLevel, std::string_view text) { line = text; });
  run(asked);
  EXPECT_EQ(line, "prune: left out: narrow.weight has 5 outputs; a block takes 8");
}

// Sparse layers are left out, but still count as the first or the last layer.
TEST_F(Pruning, LeavesOutLayersThatAreSparseAlready) {
  Linear dense(LinearConfig{.in = 12, .out = 10});
  dense.weight().set_mask(Tensor::full({10, 12}, 1, DType::u8));
  model_->replace_child("fc", SparseLinear::of(dense));
  PruneConfig asked = config();
  EXPECT_EQ(paths(asked).size(), 4u);
  EXPECT_EQ(left_out(asked, *model_).back(), "fc is the last linear layer");
  asked.layers = parse_json(R"(["fc", "wide"])", "layers");
  EXPECT_EQ(paths(asked), (Texts{"wide.weight"}));
  EXPECT_EQ(left_out(asked, *model_), (Texts{"fc is sparse already (prune before sparsify)"}));
  asked.layers = Value("fc");
  std::vector<BlockProblem> problems;
  EXPECT_TRUE(pruned_weights(asked, *model_, problems).empty());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "layers");
  EXPECT_EQ(problems[0].message, "each of these layers is sparse already; prune before sparsify");
}

TEST_F(Pruning, MeetsTheTargetInEachLayer) {
  run(config());
  for (const PrunedWeight& weight : weights(config())) {
    EXPECT_EQ(weight.kept(), std::llround(0.2 * static_cast<double>(weight.numel()))) << weight.path;
    const Tensor mask = weight.parameter->mask();
    for (std::int64_t i = 0; i < weight.numel(); ++i) {
      if (mask.data<std::uint8_t>()[i] != 0) continue;
      ASSERT_EQ(weight.parameter->value().data<float>()[i], 0.0F) << weight.path;
    }
  }
}

TEST_F(Pruning, MeetsTheTargetInEachFactor) {
  model_->replace_child("wide", std::make_unique<Tucker2Conv2d>(Tucker2Conv2dConfig{
                                    .conv = {.in = 8, .out = 32, .kernel = {3, 3}}, .rank_in = 5, .rank_out = 7}));
  initialize(*model_, 1);
  PruneConfig asked = config();
  asked.layers = Value::list({Value("wide"), Value("factored")});
  Prune prune = run(asked);
  EXPECT_EQ(paths(asked), (Texts{"wide.in_factor", "wide.core", "wide.out_factor", "factored.in_factor", "factored.out_factor"}));
  for (const PrunedWeight& weight : weights(asked)) {
    EXPECT_EQ(weight.kept(), std::llround(0.2 * static_cast<double>(weight.numel()))) << weight.path;
  }
  EXPECT_NEAR(prune.take_rows().back().at("prune").at("sparsity").as_double(), 0.8, 0.01);
}

TEST_F(Pruning, TheLastRuleThatMatchesALayerHoldsForIt) {
  PruneConfig asked = config(0.5);
  asked.sparsity.targets = {{Value("*r*"), 0.9}, {Value("narrow"), 0.25}};
  Prune prune = run(asked);
  for (const PrunedWeight& weight : weights(asked)) {
    const double target = weight.layer == "narrow" ? 0.25 : weight.layer == "factored" ? 0.9 : 0.5;
    EXPECT_EQ(weight.target, target) << weight.path;
    EXPECT_EQ(weight.kept(), std::llround((1 - target) * static_cast<double>(weight.numel()))) << weight.path;
  }
  const std::vector<Value> rows = prune.take_rows();
  EXPECT_NEAR(rows.back().at("prune").at("asked").as_double(), prune.sparsity(), 1e-3) << "of all together";
}

TEST_F(Pruning, RulesThatAreForNoPrunedLayerAreNamed) {
  const auto problem_of = [&](std::vector<TargetRule> rules, const std::string& key, const std::string& part) {
    PruneConfig asked = config();
    asked.sparsity.targets = std::move(rules);
    std::vector<BlockProblem> problems;
    pruned_weights(asked, *model_, problems);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].key, key);
    EXPECT_NE(problems[0].message.find(part), std::string::npos) << problems[0].message;
  };
  problem_of({{Value("wide"), 0.9}, {Value("narow"), 0.9}}, "sparsity.targets[1].layers", "narrow");
  problem_of({{Value("stem"), 0.9}}, "sparsity.targets[0].layers", "stem");
  problem_of({{Value("wide"), 0.9}, {Value("*"), 0.7}}, "sparsity.targets[0].layers", "later rules take every layer");
}

// Each pattern with parameters that fit two weights of 32 channels. The sparsity is fixed by the pattern or is the target.
TEST_F(Pruning, EveryPatternMeetsTheTargetInEveryScope) {
  for (const std::string_view name : pattern_names()) {
    for (const char* scope : {"layer", "global", "erk"}) {
      SCOPED_TRACE(str(name, ' ', scope));
      PruneConfig asked = config();
      asked.layers = Value("wide");
      asked.scope = scope;
      asked.pattern.pattern = name;
      if (name == "block") asked.pattern.block = Extent{4, 2};
      if (name == "tile" || name == "tile_element") asked.pattern.group = 8;
      const double own = asked.pattern.own_sparsity();
      if (own > 0) asked.sparsity = {.target = own, .schedule = "one_shot"};
      const std::int64_t all = weights(asked).front().numel();
      const double reached = run(asked).sparsity();
      EXPECT_GE(reached, asked.sparsity.target - 0.5 / static_cast<double>(all)) << "or above it by less than a unit:";
      EXPECT_LT(reached, asked.sparsity.target + (name == "channel" ? 72.0 : 8.0) / static_cast<double>(all));
      weights(asked).front().parameter->set_mask({});
      initialize(*model_, 1);
    }
  }
}

TEST_F(Pruning, LeavesOutWhatThePatternCannotHold) {
  PruneConfig asked = config();
  asked.pattern = {.pattern = "block", .block = Extent{8, 8}};
  EXPECT_EQ(paths(asked), (Texts{"wide.weight"})) << "others have fewer outputs or inputs";
  asked.layers = Value("narrow");
  std::vector<BlockProblem> problems;
  EXPECT_TRUE(pruned_weights(asked, *model_, problems).empty());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].message,
            "no layer has a weight that pattern block can hold; narrow.weight has 5 outputs; a block takes 8");
}

TEST_F(Pruning, GlobalAndErkMeetItTogether) {
  std::int64_t all = 0;
  for (const PrunedWeight& weight : weights(config())) all += weight.numel();
  for (const char* scope : {"global", "erk"}) {
    PruneConfig asked = config();
    asked.scope = scope;
    run(asked);
    std::int64_t kept = 0;
    for (const PrunedWeight& weight : weights(asked)) {
      kept += weight.kept();
      weight.parameter->set_mask({});
    }
    EXPECT_EQ(kept, std::llround(0.2 * static_cast<double>(all))) << scope;
    initialize(*model_, 1);
  }
}

// Evci et al., ICML 2020: density min(1, eps (sum of sizes) / (product of sizes)).
TEST_F(Pruning, ErkKeepsByTheShapes) {
  const std::vector<PrunedWeight> all = weights(config());
  for (const auto& [sparsity, full] : {std::pair{0.8, 3}, {0.9, 0}, {0.95, 0}}) {
    SCOPED_TRACE(sparsity);
    const std::vector<Budget> parts = budgets("erk", all, sparsity);
    std::int64_t elements = 0;
    double left = 0, sums = 0;  // kept elements and sizes of the weights that lose some
    std::vector<double> sum_of(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const std::int64_t size : all[i].parameter->value().shape()) sum_of[i] += static_cast<double>(size);
      elements += all[i].numel();
      if (parts[i].kept == all[i].numel()) continue;
      left += static_cast<double>(parts[i].kept);
      sums += sum_of[i];
    }
    const double eps = left / sums;
    std::int64_t kept = 0;
    int reached_full = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      kept += parts[i].kept;
      reached_full += parts[i].kept == all[i].numel() ? 1 : 0;
      const double asked = std::min(eps * sum_of[i], static_cast<double>(all[i].numel()));
      EXPECT_NEAR(static_cast<double>(parts[i].kept), asked, 1.5) << all[i].path;
    }
    EXPECT_EQ(reached_full, full);
    EXPECT_EQ(kept, std::llround((1 - sparsity) * static_cast<double>(elements)));
  }
}

}  // namespace
}  // namespace tessera::testing
