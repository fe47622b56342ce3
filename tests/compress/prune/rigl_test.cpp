// Which elements a moving mask drops and grows, and when.
#include "compress/prune/rigl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "compress/patterns/elements.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/support/scopes.h"

namespace tessera::testing {
namespace {

using Bits = std::vector<std::uint8_t>;
constexpr StageLength kStage{.steps = 100, .steps_per_epoch = 10};

class RiglHook : public ::testing::Test {
 protected:
  RiglHook() {
    model_.add_child("stem", std::make_unique<Conv2d>(Conv2dConfig{.in = 3, .out = 8, .kernel = {3, 3}}));
    model_.add_child("wide", std::make_unique<Conv2d>(Conv2dConfig{.in = 8, .out = 32, .kernel = {3, 3}}));
    model_.add_child("narrow", std::make_unique<Conv2d>(Conv2dConfig{.in = 32, .out = 5, .kernel = {1, 1}}));
    model_.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 10}));
    initialize(model_, 1);
  }
  static RiglConfig config() {
    RiglConfig config;
    config.sparsity = 0.8;
    config.every = Duration::steps(10);
    return config;
  }
  Parameter& weight(const char* layer = "wide") { return model_.child(layer).parameter("weight"); }
  Bits mask(const char* layer = "wide") { return weight(layer).mask().to_vector<std::uint8_t>(); }
  std::int64_t kept(const char* layer) { return std::ranges::count(mask(layer), 1); }
  // Does what a step does, with random gradients that differ from step to step.
  void step(Rigl& rigl, std::int64_t done) {
    StepStateData data;
    rigl.on_step_begin(model_, done - 1, data);
    for (const NamedParameter& entry : named_parameters(model_)) {
      Tensor gradient = Tensor::empty(entry.parameter->value().shape());
      fill_normal(gradient, RngStream(7, entry.path, "test"), 0, 1, static_cast<std::uint64_t>(done));
      entry.parameter->set_grad(gradient);
    }
    rigl.after_backward(model_, state_);
    for (const NamedParameter& entry : named_parameters(model_)) entry.parameter->mask_grad();
    if (done % rigl.interval() == 0) rigl.between_steps(model_, done);
    for (const NamedParameter& entry : named_parameters(model_)) entry.parameter->zero_grad();
  }

  Sequential model_;
  StepState state_;
};

TEST_F(RiglHook, DrawsMasksOfTheSparsityForWeightsThatHaveNone) {
  Rigl rigl(config(), model_, kStage, 7);
  rigl.on_stage_begin(model_);
  EXPECT_FALSE(weight("stem").mask().defined());
  EXPECT_FALSE(weight("fc").mask().defined());
  const std::int64_t all = weight("wide").value().numel() + weight("narrow").value().numel();
  EXPECT_EQ(kept("wide") + kept("narrow"), std::llround(0.2 * static_cast<double>(all)));
  EXPECT_GT(kept("narrow") * weight("wide").value().numel(), kept("wide") * weight("narrow").value().numel()) << "erk: denser";
  const Bits first = mask();
  for (const std::uint64_t seed : {7, 8}) {
    for (const char* layer : {"wide", "narrow"}) weight(layer).set_mask({});
    draw_masks(config(), model_, seed);
    EXPECT_EQ(mask() == first, seed == 7);
  }
  RiglConfig other = config();
  other.scope = "layer";
  const Bits before = mask();
  weight("narrow").set_mask({});
  draw_masks(other, model_, 1);
  EXPECT_EQ(kept("narrow"), 32);
  EXPECT_EQ(mask(), before) << "a mask that is there stays";
}

TEST_F(RiglHook, TellsWhatItLeavesOut) {
  std::string line;
  const LogSinkScope sink([&](LogLevel, std::string_view text) { line = text; });
  Rigl(config(), model_, kStage, 7).on_stage_begin(model_);
  EXPECT_EQ(line, "rigl: left out: stem is the first convolution; fc is the last linear layer");
}

TEST_F(RiglHook, DropsTheLeastWeightsAndGrowsTheLargestGradients) {
  const Tensor value = Tensor::from(std::vector<float>{5, 1, -4, 2, 0, 0, 0, 0}, {2, 4});
  const Tensor gradient = Tensor::from(std::vector<float>{9, 9, 9, 9, 1, -3, 2, 0}, {2, 4});
  Parameter parameter("weight", value, ParameterRole::weight);
  parameter.set_mask(Tensor::from(Bits{1, 1, 1, 1, 0, 0, 0, 0}, {2, 4}));
  const PrunedWeight weight{.path = "weight", .layer = "", .parameter = &parameter};
  EXPECT_EQ(moved_mask(weight, gradient, 0).to_vector<std::uint8_t>(), (Bits{1, 1, 1, 1, 0, 0, 0, 0}));
  const Tensor small = Tensor::from(std::vector<float>{9, 0.1F, 9, 0.2F, 1, -3, 2, 0}, {2, 4});
  EXPECT_EQ(moved_mask(weight, small, 2).to_vector<std::uint8_t>(), (Bits{1, 0, 1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(moved_mask(weight, gradient, 2).to_vector<std::uint8_t>(), (Bits{1, 1, 1, 1, 0, 0, 0, 0}))
      << "of largest gradient are those that were dropped";
  EXPECT_EQ(std::ranges::count(moved_mask(weight, small, 100).to_vector<std::uint8_t>(), 1), 4) << "no more than there are";
}

TEST_F(RiglHook, MovesTheShareOfACosineUntilTheEndAndKeepsTheCount) {
  Rigl rigl(config(), model_, kStage, 7);
  rigl.on_stage_begin(model_);
  const std::int64_t wide = kept("wide"), narrow = kept("narrow");
  for (std::int64_t done = 1; done <= kStage.steps; ++done) {
    const Bits before = mask();
    step(rigl, done);
    EXPECT_EQ(kept("wide"), wide);
    EXPECT_EQ(kept("narrow"), narrow);
    const bool due = done % 10 == 0 && done < 75;
    EXPECT_EQ(mask() == before, !due) << done;
    const Tensor& value = weight().value();
    const Bits now = mask();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (before[i] != 0) continue;
      ASSERT_EQ(value.data<float>()[i], 0) << "grown ones begin at 0";
    }
  }
  const std::vector<Value> rows = rigl.take_rows();
  ASSERT_EQ(rows.size(), 7u);
  for (const Value& row : rows) {
    const double t = static_cast<double>(row.at("rigl").at("step").as_int()) / 75;
    const double fraction = row.at("rigl").at("fraction").as_double();
    EXPECT_NEAR(fraction, 0.15 * (1 + std::cos(std::numbers::pi * t)), 1e-12);
    EXPECT_LE(static_cast<double>(row.at("rigl").at("moved").as_int()), fraction * static_cast<double>(wide + narrow));
    EXPECT_GT(row.at("rigl").at("moved").as_int(), 0);
  }
}

TEST_F(RiglHook, NeedsNoStateToGoOn) {
  Rigl first(config(), model_, kStage, 7);
  first.on_stage_begin(model_);
  for (std::int64_t done = 1; done <= 45; ++done) step(first, done);
  const Tensor value = weight().value().clone(), saved = weight().mask().clone();
  const Tensor other = weight("narrow").value().clone(), other_saved = weight("narrow").mask().clone();
  for (std::int64_t done = 46; done <= 80; ++done) step(first, done);
  const Bits straight = mask();
  weight().set_mask(saved);
  weight().set_value(value);
  weight("narrow").set_mask(other_saved);
  weight("narrow").set_value(other);
  Rigl second(config(), model_, kStage, 7);
  second.load_state(first.state());
  for (std::int64_t done = 46; done <= 80; ++done) step(second, done);
  EXPECT_EQ(mask(), straight);
}

TEST_F(RiglHook, ProblemsAreNamed) {
  const auto key_of = [](const std::vector<BlockProblem>& problems) { return problems.empty() ? "" : problems.front().key; };
  RiglConfig asked = config();
  EXPECT_EQ(key_of(rigl_problems(asked, kStage)), "");
  asked.end = Duration::steps(101);
  EXPECT_EQ(key_of(rigl_problems(asked, kStage)), "end");
  asked.end = Duration::steps(10);
  EXPECT_EQ(key_of(rigl_problems(asked, kStage)), "every");
  asked.sparsity = 1e-4;
  EXPECT_EQ(key_of(rigl_problems(asked, model_)), "sparsity") << "no layer has so many weights";
  asked.layers = Value("wider");
  EXPECT_EQ(key_of(rigl_problems(asked, model_)), "layers");
  EXPECT_THROW(Rigl(asked, model_, kStage, 1), ConfigError);
}

}  // namespace
}  // namespace tessera::testing
