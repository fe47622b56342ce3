// Steps that several ranks take together. Run by mpirun; each rank also takes the same steps alone, in micro-batches.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "layers/batch_norm.h"
#include "tests/core/comm/forwarding.h"
#include "tests/support/message_of.h"
#include "tests/train/run/ranked_steps.h"
#include "train/run/rank_messages.h"
#include "train/run/rank_timings.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

// This includes dropout, momentum, clipping, averages and the sum of losses.
TEST(RankedStep, HasTheBytesOfOneProcessInMicroBatches) {
  const Bytes expected = alone(share(), false);
  EXPECT_EQ(of_ranks({}, false), expected);
  EXPECT_EQ(of_ranks(kBatch, false), expected) << "a micro-batch is no larger than a rank's share";
  EXPECT_NE(alone(share() / 2, false), expected);
}

// Each rank sums its micro-batches first, so rounding differs from one process. The random numbers are the same.
TEST(RankedStep, MicroBatchesOfARankAreCountedOverAllRanks) {
  const Bytes together = of_ranks(share() / 2, false), expected = alone(share() / 2, false);
  ASSERT_EQ(together.size(), expected.size());
  for (const auto& [name, values] : expected) {
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(together.at(name).at(i), values[i], 1e-5) << name;
  }
}

TEST(RankedStep, AllRanksHoldTheSame) { expect_the_same_on_all_ranks(of_ranks({}, true)); }

// Statistics of the batch norm. The weights match those of micro-batches, which are normalised like a rank's share.
TEST(RankedStep, RunningStatisticsAreTheMeansOfTheRanks) {
  const auto model = network(true), reference = network(true);
  TrainingConfig config = plain_sgd(0.1);
  StageTrainer trainer = trainer_of(*model, config);
  trainer.step(share_of(batch_of(0)), 0, 0);
  config.micro_batch = share();
  StageTrainer(*reference, config, kTask, 1, 10, 10).step(batch_of(0), 0, 0);
  EXPECT_EQ(weights_of(*model), weights_of(*reference));

  std::vector<float> expected;
  for (int r = 0; r < ranks().size(); ++r) {
    const auto other = network(true);
    StageTrainer(*other, plain_sgd(0.1), kTask, 1, 10, 10).step(batch_of(0).slice(r * share(), (r + 1) * share()), 0, 0);
    const std::vector<float> mean = other->child("norm").buffers().front()->value.to_vector<float>();
    if (expected.empty()) expected.resize(mean.size());
    for (std::size_t i = 0; i < mean.size(); ++i) expected[i] += mean[i];
  }
  for (float& value : expected) value /= static_cast<float>(ranks().size());
  EXPECT_EQ(model->child("norm").buffers().front()->value.to_vector<float>(), expected);
}

// Weights, momentum and running statistics match up to rounding.
TEST(RankedStep, SynchronisedNormsTakeTheStepsOfTheWholeBatch) {
  const auto after = [](bool shared, bool synchronised) {
    Sequential model;
    model.add_child("fc1", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 7}));
    model.add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 7}));
    model.add_child("fc2", std::make_unique<Linear>(LinearConfig{.in = 7, .out = 3}));
    initialize(model, 1);
    TrainingConfig config = settings();
    if (synchronised) config.sync_batch_norm = true;
    StageTrainer trainer = trainer_of(model, config, shared ? ranks() : one_process());
    Bytes values = after_steps(model, trainer, shared);
    for (const NamedBuffer& entry : named_buffers(model))
      values[entry.path] = entry.buffer->value.to(DType::f64).to_vector<double>();
    return values;
  };
  const auto largest_difference = [](const Bytes& a, const Bytes& b) {
    double largest = 0;
    for (const auto& [name, values] : a) {
      for (std::size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(values[i] - b.at(name).at(i)));
    }
    return largest;
  };
  const Bytes whole = after(false, true), together = after(true, true);
  ASSERT_EQ(together.size(), whole.size());
  EXPECT_EQ(whole, after(false, false)) << "one process has the whole batch";
  EXPECT_LT(largest_difference(together, whole), 1e-5);
  EXPECT_GT(largest_difference(after(true, false), whole), 1e-3);
}

// Records for each message whether fc1 had a gradient already. As beside() is null, the thread that adds tensors also sums them.
class Noting final : public Forwarding {
 public:
  explicit Noting(Parameter& first) : first_(first) {}
  void all_reduce(const Tensor& values, std::string_view name) override {
    noted.emplace(name, first_.grad().defined());
    ranks().all_reduce(values, name);
  }
  Communicator* beside() override { return nullptr; }

  std::map<std::string, bool> noted;

 private:
  Parameter& first_;
};

using Noted = std::map<std::string, bool>;

// The messages of each step of a network of two layers, with `hidden` features and `out` outputs.
std::vector<Noted> messages_of(std::int64_t hidden, std::int64_t out, int steps) {
  Sequential model;
  model.add_child("fc1", std::make_unique<Linear>(LinearConfig{.in = 5, .out = hidden}));
  model.add_child("fc2", std::make_unique<Linear>(LinearConfig{.in = hidden, .out = out}));
  initialize(model, 1);
  Noting noting(model.child("fc1").parameter("weight"));
  StageTrainer trainer = trainer_of(model, plain_sgd(0.1), noting);
  std::vector<Noted> all;
  for (int step = 0; step < steps; ++step) {
    trainer.step(share_of(batch_of(step)), step, step);
    all.push_back(std::exchange(noting.noted, {}));
  }
  return all;
}

// fc2 alone exceeds the size of a message.
TEST(RankedStep, GradientsAreSentBeforeBackwardComesToEarlierLayers) {
  const Noted noted = messages_of(2000, 3400, 1).front();
  EXPECT_FALSE(noted.at("fc2.weight"));
  EXPECT_TRUE(noted.at("fc2.bias fc1.weight fc1.bias"));
}

// fc2 has 1.2 MiB: more than the first message holds, but far less than the later ones hold.
TEST(RankedStep, TheFirstMessageOfEachStepIsSmall) {
  for (const Noted& noted : messages_of(600, 520, 2)) {
    EXPECT_EQ(noted, (Noted{{"fc2.weight", false}, {"fc2.bias fc1.weight fc1.bias", true}}));
  }
}

// The comparisons at the end of an epoch find a weight and a momentum that one rank has changed.
TEST(RankedStep, ADifferenceIsFoundByAllRanks) {
  const auto model = network(true);
  StageTrainer trainer = trainer_of(*model, settings());
  trainer.step(share_of(batch_of(0)), 0, 0);
  const auto found = [&] {
    return message_of<Error>([&] {
      compare_models(ranks(), *model);
      compare_parts(ranks(), trainer.shared_state());
    });
  };
  EXPECT_EQ(found(), "");
  const bool last = ranks().rank() == ranks().size() - 1;
  const std::string where = str(" on rank ", ranks().size() - 1, " and ");
  const auto expect_found = [&](const Tensor& tensor, const std::string& named) {
    const Tensor before = tensor.clone();
    if (last) tensor.fill(0.25);
    const std::string message = found();
    EXPECT_TRUE(message.starts_with("ranks differ in " + named)) << message;
    EXPECT_NE(message.find(where), std::string::npos) << message;
    tensor.copy_from(before);
    EXPECT_EQ(found(), "");
  };
  expect_found(model->child("fc2").parameter("weight").value(), "the network: fc2.weight is ");
  ASSERT_EQ(trainer.shared_state().size(), 2U) << "the optimiser and the moving average";
  for (const auto& [part, state] : trainer.shared_state()) {
    ASSERT_FALSE(state.tensors.empty()) << part;
    const std::string name = state.tensors.begin()->first;
    std::map<std::string, State> changed = trainer.shared_state();
    if (last) changed.at(part).tensors.at(name).fill(0.25);
    const std::string message = message_of<Error>([&] { compare_parts(ranks(), changed); });
    EXPECT_TRUE(message.starts_with(str("ranks differ in the state of training: ", part, '/', name, " is "))) << message;
    EXPECT_NE(message.find(where), std::string::npos) << message;
  }
}

TEST(RankedStep, TheFirstOfEachTextIsNamed) {
  EXPECT_EQ(first_ranks(ranks(), "same"), std::vector<int>{0});
  EXPECT_EQ(first_ranks(ranks(), ranks().rank() % 2 == 0 ? "even" : "odd"), (std::vector<int>{0, 1}));
}

TEST(RankedStep, RanksOfOneMachineWouldDisturbEachOthersTimes) { EXPECT_EQ(ranks_that_time(ranks(), {}), std::vector<int>{0}); }

TEST(RankedStep, RanksOfOneMachineShareItsProcessors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(fair_threads(ranks()), std::max(1, CPU_COUNT(&set) / ranks().size()));
}

// Its weights are large enough to be compressed.
std::unique_ptr<Module> wide_network() {
  auto model = std::make_unique<Sequential>();
  model->add_child("fc1", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 40}));
  model->add_child("fc2", std::make_unique<Linear>(LinearConfig{.in = 40, .out = 30}));
  model->add_child("fc3", std::make_unique<Linear>(LinearConfig{.in = 30, .out = 3}));
  initialize(*model, 1);
  return model;
}

TrainingConfig compressed() {
  TrainingConfig config = plain_sgd(0.1);
  config.power_sgd = PowerSgdConfig{.rank = 2};
  return config;
}

// The state that rank 0 saves, sent to every rank.
std::map<std::string, State> saved_by(StageTrainer& trainer) {
  trainer.gather_state();
  std::string bytes = ranks().rank() == 0 ? encode_checkpoint(Value::map(), trainer.state()) : "";
  ranks().broadcast(bytes);
  return decode_checkpoint(bytes).parts;
}

TEST(RankedStep, CompressedGradientsGoOnFromAStateWithEachRanksErrors) {
  const auto straight = wide_network(), resumed = wide_network();
  StageTrainer trainer = trainer_of(*straight, compressed());
  for (int step = 0; step < 3; ++step) trainer.step(share_of(batch_of(step)), step, step);
  const std::map<std::string, State> parts = saved_by(trainer);
  ASSERT_TRUE(parts.at("power_sgd").tensors.contains(str("error/", ranks().size() - 1, "/fc2.weight")));
  for (std::size_t i = 0; i < named_parameters(*resumed).size(); ++i) {
    named_parameters(*resumed)[i].parameter->set_value(named_parameters(*straight)[i].parameter->value().clone());
  }
  StageTrainer other = trainer_of(*resumed, compressed());
  other.load_state(parts);
  for (int step = 3; step < 6; ++step) {
    trainer.step(share_of(batch_of(step)), step, step);
    other.step(share_of(batch_of(step)), step, step);
  }
  EXPECT_EQ(weights_of(*resumed), weights_of(*straight));
}

TEST(RankedStep, FactorsOfCompressedGradientsAreCompared) {
  const auto model = wide_network();
  StageTrainer trainer = trainer_of(*model, compressed());
  trainer.step(share_of(batch_of(0)), 0, 0);
  const std::map<std::string, State> parts = trainer.shared_state();
  EXPECT_EQ(message_of<Error>([&] { compare_parts(ranks(), parts); }), "");
  if (ranks().rank() == ranks().size() - 1) parts.at("power_sgd").tensors.at("factor/fc2.weight").fill(0.25);
  const std::string message = message_of<Error>([&] { compare_parts(ranks(), parts); });
  EXPECT_TRUE(message.starts_with("ranks differ in the state of training: power_sgd/factor/fc2.weight is ")) << message;
}

TEST(RankedStep, CompressedGradientsAreThoseOfOneProcessUpToRounding) {
  const auto shared = wide_network(), alone = wide_network(), plain = wide_network();
  StageTrainer together = trainer_of(*shared, compressed()), one(*alone, compressed(), kTask, 1, 10, 10),
               uncompressed(*plain, plain_sgd(0.1), kTask, 1, 10, 10);
  for (int step = 0; step < 6; ++step) {
    together.step(share_of(batch_of(step)), step, step);
    one.step(batch_of(step), step, step);
    uncompressed.step(batch_of(step), step, step);
  }
  const std::vector<float> weights = weights_of(*shared), single = weights_of(*alone);
  ASSERT_EQ(weights.size(), single.size());
  for (std::size_t i = 0; i < single.size(); ++i) EXPECT_NEAR(weights[i], single[i], 1e-4);
  EXPECT_NE(weights_of(*plain), single);
}

// Every rank computes the gradients of the whole batch itself.
TEST(RankedStep, GradientsThatHooksAskForHaveTheBytesOfOneProcess) {
  const auto gradients = [](StageTrainer& trainer, Module& model) {
    std::vector<std::vector<float>> all;
    trainer.with_gradients(batch_of(0), [&] {
      for (const NamedParameter& entry : named_parameters(model)) all.push_back(entry.parameter->grad().to_vector<float>());
    });
    return all;
  };
  const auto model = network(true), reference = network(true);
  StageTrainer trainer = trainer_of(*model, settings()), other(*reference, settings(share()), kTask, 1, 10, 10);
  const auto expected = gradients(other, *reference);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(gradients(trainer, *model), expected);
  // Synchronised norms see the whole batch here too.
  TrainingConfig synchronised = settings();
  synchronised.sync_batch_norm = true;
  StageTrainer together = trainer_of(*model, synchronised), whole(*reference, settings(), kTask, 1, 10, 10);
  const auto of_whole = gradients(whole, *reference);
  EXPECT_NE(of_whole, expected);
  EXPECT_EQ(gradients(together, *model), of_whole);
}

}  // namespace
}  // namespace tessera
