// What pruning does to the weights, step by step.
#include "compress/prune/prune.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "layers/channel_flow.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/residual.h"
#include "layers/sequential.h"
#include "tests/compress/prune/pruned_network.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

TEST_F(Pruning, EachLayerGoesFromItsOwnSparsityToItsOwnTarget) {
  PruneConfig before = config(0.4);
  before.layers = Value("wide");
  run(before);
  PruneConfig asked = config(0.8);
  asked.sparsity.targets = {{Value("narrow"), 0}};
  run(asked, 30);
  for (const PrunedWeight& weight : weights(asked)) {
    const double initial = weight.layer == "wide" ? 0.4 : 0;
    const double now = weight.layer == "narrow" ? 0 : sparsity_after(asked.sparsity, kStage, 30, {initial, 0.8});
    EXPECT_NEAR(1 - static_cast<double>(weight.kept()) / static_cast<double>(weight.numel()), now, 0.02) << weight.path;
    EXPECT_EQ(weight.parameter->mask().defined(), weight.layer != "narrow") << "a mask of ones would make a layer sparse";
  }
}

TEST_F(Pruning, WhatIsPrunedStaysPruned) {
  for (const char* score : {"magnitude", "random"}) {
    PruneConfig asked = config();
    asked.score = score;
    Prune prune(asked, *model_, kStage, {.seed = 7});
    prune.on_stage_begin(*model_);
    double before = -1;
    std::vector<Tensor> masks;
    for (std::int64_t step = 1; step <= kStage.steps; ++step) {
      prune.between_steps(*model_, step);
      const std::vector<PrunedWeight> now = weights(asked);
      for (std::size_t i = 0; i < masks.size(); ++i) {
        const Tensor kept = mask_or_ones(*now[i].parameter);
        for (std::int64_t k = 0; k < now[i].numel(); ++k) {
          ASSERT_LE(kept.data<std::uint8_t>()[k], masks[i].data<std::uint8_t>()[k]) << score << ' ' << now[i].path;
        }
      }
      masks.clear();
      for (const PrunedWeight& weight : now) masks.push_back(mask_or_ones(*weight.parameter));
      EXPECT_GE(prune.sparsity(), before);
      before = prune.sparsity();
    }
    EXPECT_NEAR(before, 0.8, 0.01);
    for (const PrunedWeight& weight : weights(asked)) weight.parameter->set_mask({});
    initialize(*model_, 1);
  }
}

// A pruned output stays zero after its bias and its norm. Kept outputs do not change.
TEST_F(Pruning, ChannelsTakeBiasAndNormAlong) {
  PruneConfig asked = config(0.5);
  asked.pattern.pattern = "channel";
  asked.layers = parse_json(R"(["stem", "wide"])", "layers");
  for (const char* name : {"weight", "bias"}) {
    Parameter& parameter = model_->child("norm").parameter(name);
    parameter.set_value(Tensor::full({8}, 0.5));
  }
  run(asked);
  const Tensor mask = model_->child("stem").parameter("weight").mask();
  for (Parameter* const follower : {&model_->child("stem").parameter("bias"), &model_->child("norm").parameter("weight"),
                                    &model_->child("norm").parameter("bias")}) {
    ASSERT_TRUE(follower->mask().defined());
    std::int64_t kept = 0;
    for (std::int64_t c = 0; c < 8; ++c) {
      EXPECT_EQ(follower->mask().data<std::uint8_t>()[c], mask.data<std::uint8_t>()[c * 27]) << c;
      kept += follower->mask().data<std::uint8_t>()[c];
    }
    EXPECT_EQ(kept, 4);
  }
  EXPECT_TRUE(model_->child("wide").parameter("bias").mask().defined()) << "no norm follows it";
  EXPECT_FALSE(model_->child("fc").parameter("bias").mask().defined());
  EXPECT_EQ(model_->child("norm").parameter("bias").value().to_vector<float>(),
            model_->child("norm").parameter("weight").value().to_vector<float>());
}

TEST_F(Pruning, OtherPatternsLeaveBiasAndNormAlone) {
  PruneConfig asked = config(0.5);
  asked.pattern.pattern = "tile";
  asked.pattern.group = 8;
  asked.layers = Value("stem");
  run(asked);
  EXPECT_FALSE(model_->child("stem").parameter("bias").mask().defined());
  EXPECT_FALSE(model_->child("norm").parameter("bias").mask().defined());
}

// Two layers whose outputs are added lose the same outputs, by their joint norms, in every scope.
TEST(CoupledPruning, TakesTheSameOutputsOfEveryTermOfASum) {
  for (const char* scope : {"layer", "global", "erk"}) {
    SCOPED_TRACE(scope);
    Sequential root;
    root.add_child("first", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 4, .kernel = {1, 1}, .bias = false}));
    Module& sum = root.add_child("sum", std::make_unique<Residual>(ResidualConfig{}));
    sum.add_child("body", std::make_unique<Conv2d>(Conv2dConfig{.in = 4, .out = 4, .kernel = {1, 1}, .bias = false}));
    root.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 4, .out = 5}));
    const auto fill = [](Module& layer, std::initializer_list<float> by_output) {
      Parameter& weight = layer.parameter("weight");
      const Tensor value = Tensor::empty(weight.value().shape());
      std::int64_t c = 0;
      for (const float each : by_output) value.slice(0, c, c + 1).fill(each), ++c;
      weight.set_value(value);
    };
    fill(root.child("first"), {4, 3, 2, 1});  // alone it would keep the first two
    fill(sum.child("body"), {1, 1, 9, 3});  // and this one the last two
    PruneConfig config;
    config.pattern.pattern = "channel";
    config.pattern.coupled = true;
    config.sparsity.target = 0.5;
    config.scope = scope;
    config.layers = parse_json(R"(["first", "sum.body"])", "layers");
    prune_to_target(config, root);
    const std::vector<bool> gone{false, true, false, true};
    EXPECT_EQ(masked_outputs(root.child("first").parameter("weight")), gone);
    EXPECT_EQ(masked_outputs(sum.child("body").parameter("weight")), gone);
  }
}

TEST_F(Pruning, RandomFollowsTheSeedAlone) {
  PruneConfig asked = config();
  asked.score = "random";
  run(asked);
  const std::vector<std::uint8_t> once = weights(asked).front().parameter->mask().to_vector<std::uint8_t>();
  for (const PrunedWeight& weight : weights(asked)) weight.parameter->set_mask({});
  initialize(*model_, 99);
  run(asked);
  EXPECT_EQ(weights(asked).front().parameter->mask().to_vector<std::uint8_t>(), once) << "whatever the weights are";
}

TEST_F(Pruning, StartsFromASparseNetworkAndRefusesToPruneNothing) {
  run(config(0.5));
  EXPECT_NEAR(run(config(0.8)).sparsity(), 0.8, 0.01);
  const std::string message = message_of<ConfigError>([&] { run(config(0.7)); });
  EXPECT_TRUE(message.starts_with("prune: sparsity.target: is 0.7; 0.8")) << message;
  EXPECT_TRUE(message.ends_with(" of these weights are zero already, so nothing would be pruned")) << message;
  EXPECT_FALSE(mask_problems(config(0.8), *model_).empty()) << "to one weight";
}

// Each weight has a separate start and target: overall more weights are zero already than the targets ask for.
TEST_F(Pruning, IsRefusedOnlyWhereNoWeightIsBelowItsTarget) {
  PruneConfig before = config(0.9);
  before.layers = Value("wide");
  run(before);
  const std::int64_t wide = weights(before).front().kept();
  PruneConfig asked = config(0.5);
  run(asked);
  for (const PrunedWeight& weight : weights(asked)) {
    EXPECT_EQ(weight.kept(), weight.layer == "wide" ? wide : (weight.numel() + 1) / 2) << weight.path;
  }
  asked.sparsity.targets = {{Value("narrow"), 0.25}};
  const std::vector<BlockProblem> problems = mask_problems(asked, *model_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "sparsity.targets");
  EXPECT_TRUE(problems[0].message.starts_with("the targets make 0.")) << problems[0].message;
  EXPECT_TRUE(problems[0].message.ends_with(" are zero already, so nothing would be pruned")) << problems[0].message;
  for (const char* scope : {"global", "erk"}) {
    PruneConfig together = config(0.5);
    together.scope = scope;
    EXPECT_EQ(mask_problems(together, *model_).size(), 1u) << scope << ": from the sparsity of all";
  }
}

// ERK makes a large weight so sparse that only single elements would be left.
TEST_F(Pruning, TileElementNeedsATileInEachWeight) {
  PruneConfig asked = config(0.94);
  asked.pattern.pattern = "tile_element";
  asked.pattern.group = 8;
  EXPECT_TRUE(mask_problems(asked, *model_).empty()) << "each weight keeps 6 %, 5 % as single elements";
  asked.scope = "erk";
  const std::vector<BlockProblem> problems = mask_problems(asked, *model_);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "extra");
  EXPECT_TRUE(problems[0].message.starts_with("is 0.05; scope: erk gives ")) << problems[0].message;
  EXPECT_TRUE(problems[0].message.ends_with(", which leaves it no tile")) << problems[0].message;
}

// The pattern forms tiles out of an unstructured mask. No weight comes back, and the target is still met.
TEST_F(Pruning, APatternStartsFromAnotherOnesMask) {
  PruneConfig asked = config(0.5);
  asked.layers = Value("wide");
  run(asked);
  const Bits before = weights(asked).front().parameter->mask().to_vector<std::uint8_t>();
  for (const std::string_view name : {"tile", "block", "channel", "tile_element"}) {
    SCOPED_TRACE(name);
    PruneConfig next = config(0.8);
    next.layers = asked.layers;
    next.pattern.pattern = name;
    if (name == "block") next.pattern.block = Extent{4, 2};
    EXPECT_NEAR(run(next).sparsity(), 0.8, name == "channel" ? 0.03 : 0.004);
    const Bits after = weights(asked).front().parameter->mask().to_vector<std::uint8_t>();
    for (std::size_t i = 0; i < after.size(); ++i) ASSERT_LE(after[i], before[i]);
    weights(asked).front().parameter->set_mask({});
    initialize(*model_, 1);
    run(asked);
  }
}

TEST_F(Pruning, ItsStateGoesOnWithTheRamp) {
  Prune first = run(config(), 40);
  Prune second(config(), *model_, kStage, {.seed = 7});
  second.load_state(first.state());
  for (std::int64_t step = 41; step <= kStage.steps; ++step) second.between_steps(*model_, step);
  const std::vector<Value> rows = second.take_rows();
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.front().at("prune").at("asked").as_double(), sparsity_after(config().sparsity, kStage, 50, {.target = 0.8}));
  EXPECT_THROW(second.load_state({}), IoError);
}

TEST_F(Pruning, SchedulesThatMissTheirTargetAreNamed) {
  const auto problem_of = [](const char* key, Duration begin, std::optional<Duration> end, const char* schedule = "cubic") {
    PruneConfig asked = config();
    asked.sparsity.begin = begin;
    asked.sparsity.end = end;
    asked.sparsity.schedule = schedule;
    const std::vector<BlockProblem> problems = schedule_problems(asked, kStage);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].key, key);
  };
  problem_of("sparsity.end", Duration::steps(50), Duration::steps(40));
  problem_of("sparsity.end", Duration::steps(0), Duration::steps(101));
  problem_of("sparsity.end", Duration::steps(50), Duration::steps(50));
  problem_of("sparsity.begin", Duration::steps(101), std::nullopt, "one_shot");
  EXPECT_TRUE(schedule_problems(config(), kStage).empty());
}

}  // namespace
}  // namespace tessera::testing
