#include "compress/timing/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "core/device/constant_weights.h"
#include "core/device/device_work.h"
#include "core/ops/arithmetic.h"
#include "core/support/log.h"
#include "tests/support/scopes.h"

namespace tessera {
namespace {

class Sleep final : public Module {
 public:
  explicit Sleep(std::chrono::microseconds time) : time_(time) {}
  std::string_view kind() const override { return "sleep"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override {
    EXPECT_FALSE(context.training);
    EXPECT_FALSE(grad_enabled());
    EXPECT_NE(ConstantWeights::current(), nullptr) << "a deployed network's weights do not change";
    ++calls_;
    shape_ = x.shape();
    std::this_thread::sleep_for(time_);
    return x;
  }
  Shape output_shape(const Shape& input, Trace*) const override { return input; }

  int calls() const { return calls_; }
  const Shape& shape() const { return shape_; }

 private:
  std::chrono::microseconds time_;
  int calls_ = 0;
  Shape shape_;
};

TEST(Latency, ComparesEachNetworkWithTheFirst) {
  Sleep quick(std::chrono::microseconds(1000));
  Sleep slow(std::chrono::microseconds(5000));
  Module* networks[] = {&quick, &slow};
  const PairedTiming timing = time_networks(networks, {3, 2, 2, 1}, 7);
  ASSERT_EQ(timing.networks.size(), 2u);
  ASSERT_EQ(timing.speedup.size(), 2u);
  EXPECT_GE(timing.networks[1].median, 5.0);  // a sleep is never shorter than asked
  EXPECT_LT(timing.networks[0].median, timing.networks[1].median);
  EXPECT_DOUBLE_EQ(timing.speedup[0].median, 1.0);
  EXPECT_LT(timing.speedup[1].median, 1.0);
  EXPECT_DOUBLE_EQ(timing.of_medians(0), 1.0);
  EXPECT_DOUBLE_EQ(timing.of_medians(1), timing.networks[0].median / timing.networks[1].median);
  ASSERT_EQ(timing.alone.size(), 2u);
  EXPECT_GE(timing.alone[0], 1.0);
  EXPECT_GE(timing.alone[1], 5.0);
  for (const Summary& t : timing.networks) {
    EXPECT_LE(t.p10, t.median);
    EXPECT_LE(t.median, t.p90);
  }
}

// Reads integers below 7 and returns a weight times each.
class Lookup final : public Module {
 public:
  Lookup() { add_parameter("weight", Tensor::full({1}, 1)); }
  std::string_view kind() const override { return "lookup"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override {
    EXPECT_FALSE(x.requires_grad()) << "whole numbers have no gradient";
    x_ = x.value();
    return mul(parameter("weight").var(), Var(x_.to(DType::f32)));
  }
  Shape output_shape(const Shape& input, Trace*) const override { return input; }
  std::int64_t input_limit() const override { return 7; }

  Tensor x_;
};

TEST(Latency, WholeNumbersAreDrawnBelowWhatTheNetworkReads) {
  for (const Phase phase : {Phase::inference, Phase::training}) {
    Lookup lookup;
    TimedWork(lookup, {40, 3}, {.phase = phase, .input_gradient = true}).run(lookup);
    ASSERT_EQ(lookup.x_.dtype(), DType::i64);
    std::vector<std::int64_t> drawn = lookup.x_.to_vector<std::int64_t>();
    std::ranges::sort(drawn);
    drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
    EXPECT_EQ(drawn, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(lookup.parameter("weight").grad().defined(), phase == Phase::training);
  }
}

TEST(Latency, WarmsUpAndRepeatsOnTheAskedShape) {
  const HostClock clock([] { return 0.0; });  // no round is read again
  Sleep one(std::chrono::microseconds(0));
  Module* networks[] = {&one};
  time_networks(networks, {5, 1}, 6);
  EXPECT_EQ(one.calls(), 16);
  EXPECT_EQ(one.shape(), Shape({5, 1}));
}

TEST(Latency, WarnsWhereOtherProgramsHadTheCores) {
  double waited = 0;
  const HostClock clock([] { return 0.0; }, [&] { return waited += 1; });
  std::string warnings;
  const testing::LogSinkScope sink([&](LogLevel, std::string_view message) { warnings += message; });
  Sleep one(std::chrono::microseconds(0)), other(std::chrono::microseconds(0));
  Module* networks[] = {&one, &other};
  time_networks(networks, {5, 1}, 6);
  EXPECT_TRUE(warnings.starts_with("timing the networks: threads waited for a core in 18 of 18 rounds")) << warnings;
}

// y = x * w, with a buffer that counts training passes.
class Scale final : public Module {
 public:
  Scale() : w_(add_parameter("w", Tensor::full({1}, 2.0))), passes_(add_buffer("passes", Tensor::zeros({1}))) {}
  std::string_view kind() const override { return "scale"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override {
    if (context.training) passes_.value.fill(passes_.value.item() + 1);
    trained += context.training ? 1 : 0;
    input_needs_gradient = x.requires_grad();
    return mul(x, w_.var());
  }
  Shape output_shape(const Shape& input, Trace*) const override { return input; }

  bool input_needs_gradient = false;
  int trained = 0;  // training forwards, which nothing resets

 private:
  Parameter& w_;
  Buffer& passes_;
};

TEST(Latency, TrainingIsAForwardAndABackwardThatLeavesNothing) {
  Scale module;
  {
    const Untouched untouched(module);
    for (const bool input_gradient : {false, true}) {
      TimedWork(module, {4, 3}, {.phase = Phase::training, .input_gradient = input_gradient}).run(module);
      EXPECT_EQ(module.input_needs_gradient, input_gradient);
    }
    EXPECT_TRUE(module.parameter("w").grad().defined());
    EXPECT_EQ(module.buffers().at(0)->value.item(), 2);
  }
  EXPECT_FALSE(module.parameter("w").grad().defined());
  EXPECT_EQ(module.buffers().at(0)->value.item(), 0);
}

TEST(Latency, NetworksAreTimedInTrainingAndLeftAsTheyWere) {
  const HostClock clock([] { return 0.0; });
  Scale one, other;
  Module* networks[] = {&one, &other};
  const PairedTiming timing = time_networks(networks, {4, 3}, 5, {.phase = Phase::training});
  EXPECT_EQ(timing.networks.size(), 2u);
  for (Scale* module : {&one, &other}) {
    EXPECT_EQ(module->trained, (10 + 5) + (2 + 5)) << "alone, then in turn";
    EXPECT_FALSE(module->parameter("w").grad().defined());
    EXPECT_EQ(module->buffers().at(0)->value.item(), 0);
  }
}

}  // namespace
}  // namespace tessera
