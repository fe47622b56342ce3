#include "train/run/memory_advice.h"

#include <gtest/gtest.h>

#include <set>

#include "core/storage.h"
#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "train/config/yaml.h"
#include "train/run/decisions_file.h"
#include "train/run/session.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

// Sets the device's memory limit for the duration of a test.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) : before_(memory_stats(Device::cpu()).limit) { set_memory_limit(Device::cpu(), bytes); }
  ~MemoryLimit() { set_memory_limit(Device::cpu(), before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  std::size_t before_;
};

Experiment experiment(const std::string& more, int width = 16) {
  const std::string text = str(R"(
version: 1
name: x
threads: {compute: 2, loader: 0}
data: {name: glyphs, count: 320, test_count: 32, batch: 64, val: 0}
model: {name: layers, layers: [{conv2d: {out: )",
                               width, R"(, kernel: 3, padding: 1, name: conv1}}, batch_norm, relu,
                               global_avg_pool, {linear: {out: 10, name: fc}}]}
stages: [{name: dense, train: 4s}]
deterministic: true
)",
                               more);
  return parse_experiment(parse_yaml(text, "x.yaml"));
}

class OutOfMemory : public ::testing::Test {
 protected:
  std::string train(const Experiment& experiment) {
    const RunFolder folder = RunFolder::create(real_vfs(), runs_.path().string(), "x");
    run_ = folder.path();
    return message_of<OutOfMemoryError>(
        [&] { Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), "", folder, {}).run(); });
  }
  static std::int64_t planned(const Experiment& experiment, std::int64_t micro_batch) {
    const DataSplits data = load_data(experiment.config.data, 0);
    const Shape sample = sample_shape(data);
    const std::unique_ptr<Module> model = build_model(experiment.config.model, sample);
    TrainingConfig training = experiment.config.stages[0].training;
    training.micro_batch = micro_batch;
    return plan_memory(*model, experiment.config, training, data).peak();
  }

  TemporaryFolder runs_;
  std::string run_;
};

TEST_F(OutOfMemory, SaysWhichMicroBatchFitsAndItDoes) {
  const Experiment whole = experiment("");
  ASSERT_EQ(train(whole), "");
  const std::int64_t before = static_cast<std::int64_t>(memory_stats(Device::cpu()).in_use);
  // The limit is halfway to the next size, so that rounding does not matter.
  const std::int64_t sixteen = planned(whole, 16);
  const std::int64_t thirty_two = planned(whole, 32);
  ASSERT_LT(sixteen, thirty_two);
  const auto limit = static_cast<std::size_t>(before + (sixteen + thirty_two) / 2);
  {
    const MemoryLimit scope(limit);
    const std::string message = train(whole);
    EXPECT_NE(message.find("ward: cpu: out of memory: asked for "), std::string::npos) << message;
    EXPECT_TRUE(message.ends_with(str(" bytes in use, limit ", limit,
                                      " bytes; micro_batch 16 is expected to fit; there is no "
                                      "checkpoint yet: train again with, say, micro_batch=16")))
        << message;
    EXPECT_EQ(train(experiment("micro_batch: 16\n")), "");
  }
  EXPECT_EQ(static_cast<std::int64_t>(memory_stats(Device::cpu()).in_use), before) << "a failed run keeps nothing";
}

// The advice takes dry steps. They must not time shapes that the run never has.
TEST_F(OutOfMemory, AdviceChoosesNothingByTheRunsClock) {
  Experiment whole = experiment("", 64);  // wide enough to be timed with 8 samples too
  whole.config.deterministic = false;
  const auto before = static_cast<std::int64_t>(memory_stats(Device::cpu()).in_use);
  const MemoryLimit scope(static_cast<std::size_t>(before + (planned(whole, 16) + planned(whole, 32)) / 2));
  const std::string message = train(whole);
  EXPECT_NE(message.find("is expected to fit"), std::string::npos) << message;
  for (const auto& [key, choice] : read_decisions(real_vfs(), RunFolder::open(real_vfs(), run_).decisions())) {
    EXPECT_NE(key.find("n64 "), std::string::npos) << key << " is of no batch of the run";
  }
}

TEST_F(OutOfMemory, NamesForkWhereThereIsACheckpoint) {
  const Experiment grows = experiment("");
  Experiment two = grows;
  two.config.stages[0].training.micro_batch = 8;
  two.config.stages.push_back(grows.config.stages[0]);
  two.config.stages[1].name = "whole";
  const auto before = static_cast<std::int64_t>(memory_stats(Device::cpu()).in_use);
  const MemoryLimit scope(static_cast<std::size_t>(before + (planned(grows, 16) + planned(grows, 32)) / 2));
  const std::string message = train(two);
  EXPECT_TRUE(message.ends_with(
      str("; micro_batch 16 is expected to fit; step 4 was good: tessera fork ", run_, " --at 4 micro_batch=16")))
      << message;
}

Experiment factorised(const char* layers, int batch) {
  const std::string text = str(R"(
version: 1
name: x
threads: {compute: 2, loader: 0}
data: {name: glyphs, count: 64, test_count: 32, batch: 8, val: 0}
model: {name: layers, layers: [flatten, {linear: {out: 16, name: small}}, {linear: {out: 700, name: before}},
                               {linear: {out: 900, name: wide}}, {linear: {out: 10, name: fc}}]}
stages: [{name: svd, train: 4s, factorise: {format: svd, ranks: {rank: 4}, layers: [)",
                               layers, "], keep_for: {batch: ", batch, "}}}]");
  return parse_experiment(parse_yaml(text, "x.yaml"));
}

// The decomposition of `wide` needs 43.7 MB, and timing `small` with a batch of 16384 needs 66 MB.
TEST_F(OutOfMemory, AdvisesASmallerTimedBatchOnlyWhereTimingHadNoRoom) {
  constexpr std::size_t kRoom = 36'000'000;
  const MemoryLimit scope(memory_stats(Device::cpu()).in_use + kRoom);
  const std::string timing = train(factorised("small", 16384));
  EXPECT_TRUE(timing.ends_with("train again with, say, stages[0].factorise.keep_for.batch=1")) << timing;
  const std::string later = train(factorised("small, wide", 1));
  EXPECT_TRUE(later.starts_with("layer 'wide' (singular_vectors: randomised needs less): svd of [900, 700] needs ")) << later;
  EXPECT_EQ(later.find("keep_for"), std::string::npos) << later;
}

// Every allocation of a step fails in turn. Each failure names a place, and the trainer can go on.
TEST_F(OutOfMemory, EachAllocationOfAStepMayFail) {
  const Experiment made = experiment("");
  const DataSplits data = load_data(made.config.data, 0);
  const Shape sample = sample_shape(data);
  const std::unique_ptr<Module> model = build_model(made.config.model, sample);
  initialize(*model, 0);
  StageTrainer trainer(*model, made.config.stages[0].training, kTask, 0, 10, 10);
  const Batch batch{{"image", Tensor::zeros({64, 28, 28, 1})}, {"label", Tensor::zeros({64}, DType::i64)}};
  trainer.step(batch, 0, 0);  // allocates what is kept for good
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  std::set<std::string> places;
  bool fits = false;
  for (std::size_t more = 64; !fits; more += more / 8 + 64) {
    const MemoryLimit scope(before + more);
    try {
      trainer.step(batch, 1, 1);
      fits = true;
    } catch (const OutOfMemoryError& error) {
      const std::string message = error.what();
      places.insert(message.substr(0, message.find(": cpu: out of memory: ")));
    }
  }
  for (const char* place : {"conv2d (conv1) forward", "batch_norm (1) forward", "global_avg_pool (3) backward"}) {
    EXPECT_TRUE(places.contains(place)) << place << "; found " << ::testing::PrintToString(places);
  }
  for (const std::string& place : places) {
    EXPECT_TRUE(place.ends_with("forward") || place.ends_with("backward") || place.ends_with("update")) << place;
  }
}

}  // namespace
}  // namespace tessera
