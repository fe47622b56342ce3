#include "train/run/step_graph.h"

#include <gtest/gtest.h>

#include "core/autograd/numeric_check.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "tests/support/scopes.h"
#include "tests/train/run/kept_work.h"

namespace tessera {
namespace {

using Took = StepGraph::Took;

Batch batch_of(std::int64_t samples, double value = 0) {
  return {{"image", Tensor::full({samples, 2}, value)}, {"label", Tensor::full({samples}, value, DType::i64)}};
}

class StepGraphTest : public ::testing::Test {
 protected:
  Took run(std::int64_t samples, double value = 0) { return graph_.run(batch_of(samples, value), memory_, work_); }
  std::vector<Took> run_all(const std::vector<std::int64_t>& batches) {
    std::vector<Took> took;
    for (const std::int64_t samples : batches) took.push_back(run(samples));
    return took;
  }

  int recordings_ = 0;
  int abandoned_ = 0;
  std::vector<double> seen_;  // the first element of each batch that the work received
  std::vector<const void*> memory_{this};
  StepGraph::Work work_{.run =
                            [this](const Batch& batch) {
                              EXPECT_EQ(static_cast<double>(batch.at("label").data<std::int64_t>()[0]),
                                        batch.at("image").data<float>()[0]);
                              seen_.push_back(batch.at("image").data<float>()[0]);
                            },
                        .abandon = [this] { ++abandoned_; }};
  StepGraph graph_{[this](const std::function<void()>& work) {
    ++recordings_;
    return std::make_unique<KeptWork>(work);
  }};
};

TEST_F(StepGraphTest, RecordsOnceAfterTheEagerStepsAndReplays) {
  EXPECT_EQ(run_all({4, 4, 4, 4, 4}), (std::vector{Took::eager, Took::eager, Took::recorded, Took::replayed, Took::replayed}));
  EXPECT_EQ(recordings_, 1);
}

TEST_F(StepGraphTest, EveryStepSeesItsOwnBatchOnce) {
  for (int i = 1; i <= 6; ++i) run(4, i);
  EXPECT_EQ(seen_, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST_F(StepGraphTest, WithoutARecorderEveryStepIsEager) {
  graph_ = StepGraph();
  EXPECT_EQ(run_all({4, 4, 4, 4}), std::vector(4, Took::eager));
}

TEST_F(StepGraphTest, AShortBatchRunsEagerlyAndKeepsTheRecording) {
  run_all({4, 4, 4});
  for (int epoch = 0; epoch < 4; ++epoch) {
    EXPECT_EQ(run_all({3, 4, 4}), (std::vector{Took::eager, Took::replayed, Took::replayed}));
  }
  EXPECT_EQ(recordings_, 1);
}

TEST_F(StepGraphTest, AnotherShapeThatStaysIsRecordedAnew) {
  run_all({4, 4, 4, 4});
  EXPECT_EQ(run_all({3, 3, 3, 3}), (std::vector{Took::eager, Took::eager, Took::recorded, Took::replayed}));
  EXPECT_EQ(run_all({4}), (std::vector{Took::eager}));
  EXPECT_EQ(recordings_, 2);
}

TEST_F(StepGraphTest, ValuesThatLieElsewhereEndARecording) {
  run_all({4, 4, 4, 4});
  memory_ = {&recordings_};
  EXPECT_EQ(run_all({4, 4, 4, 4}), (std::vector{Took::eager, Took::eager, Took::recorded, Took::replayed}));
  memory_.push_back(nullptr);
  EXPECT_EQ(run(4), Took::eager);
}

TEST_F(StepGraphTest, ForgettingBeginsAgain) {
  run_all({4, 4, 4, 4});
  graph_.forget();
  EXPECT_EQ(run_all({4, 4, 4}), (std::vector{Took::eager, Took::eager, Took::recorded}));
}

TEST_F(StepGraphTest, NumbersAreCheckedEagerly) {
  run_all({4, 4, 4, 4});
  {
    const NumericCheck check;
    EXPECT_EQ(run_all({4, 4, 4, 4}), std::vector(4, Took::eager));
  }
  EXPECT_EQ(run(4), Took::replayed);
}

TEST_F(StepGraphTest, ARecordingThatFailsIsToldOnceAndStepsGoOnEagerly) {
  std::vector<std::string> log;
  const testing::LogSinkScope sink([&](LogLevel, std::string_view message) { log.emplace_back(message); });
  graph_ = StepGraph([this](const std::function<void()>&) -> std::unique_ptr<DeviceGraph> {
    ++recordings_;
    throw DeviceError("capture: not allowed");
  });
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(run(4, i), Took::eager);
  EXPECT_EQ(recordings_, 1);
  EXPECT_EQ(abandoned_, 1);
  EXPECT_EQ(seen_, (std::vector<double>{1, 2, 3, 4, 5}));
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("capture: not allowed"), std::string::npos) << log[0];
}

TEST_F(StepGraphTest, TheCpuHasNoRecorder) { EXPECT_FALSE(step_recorder(Device::cpu())); }

}  // namespace
}  // namespace tessera
