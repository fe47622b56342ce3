#include "train/run/step_profiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/rng.h"
#include "layers/models/model.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

const MachinePeaks kPeaks{.threads = 1, .gflops = 100, .gbytes = 10};
constexpr std::int64_t kBatch = 2;

class ProfiledSteps : public ::testing::Test {
 protected:
  ProfiledSteps() : model_(build_model(named_model("resnet20", 10), shape_)), batch_(make_batch()) {
    initialize(*model_, 1);
    TrainingConfig config;
    config.ema = EmaConfig{.decay = 0.9, .warmup = false};
    trainer_ = std::make_unique<StageTrainer>(*model_, config, kTask, 1, 100, 100);
  }

  Batch make_batch() const {
    Batch batch{{"image", Tensor::empty(shape_)}, {"label", Tensor::zeros({kBatch}, DType::i64)}};
    fill_normal(batch.at("image"), RngStream(3, "test", "x"), 0, 1);
    return batch;
  }

  void step() {
    trainer_->step(batch_, step_, step_);
    ++step_;
  }

  ProfileReport profile(std::int64_t steps) {
    StepProfiler profiler(steps, kPeaks);
    while (!profiler.complete()) profiler.step([this] { step(); });
    return profiler.report();
  }

  Shape shape_{kBatch, 32, 32, 3};
  std::unique_ptr<Module> model_;
  Batch batch_;
  std::unique_ptr<StageTrainer> trainer_;
  std::int64_t step_ = 0;
};

std::int64_t flops_of(const ProfileReport& report, ProfilePart part) {
  std::int64_t sum = 0;
  for (const ProfileRow& row : report.rows) sum += row.part == part ? row.work.flops : 0;
  return sum;
}

TEST_F(ProfiledSteps, RowsSumToTheWallTimeOfTheSteps) {
  const ProfileReport report = profile(2);
  std::int64_t sum = 0;
  for (const ProfileRow& row : report.rows) sum += row.ns();
  EXPECT_EQ(sum, report.wall_ns());
  EXPECT_EQ(report.steps(), 2);
  EXPECT_EQ(report.between_ns.size(), 1u);
  EXPECT_EQ(step_, 2 + StepProfiler::kWarmUp);
  EXPECT_GT(report.engine_ns(), 0);
  EXPECT_LT(report.engine_ns(), report.wall_ns());
}

TEST_F(ProfiledSteps, EveryLayerThatComputesHasItsRows) {
  const ProfileReport report = profile(1);
  std::set<std::string> forward;
  std::set<std::string> backward;
  for (const ProfileRow& row : report.rows) {
    if (row.part == ProfilePart::forward && row.kernel_ns > 0) forward.insert(row.layer + ' ' + row.what);
    if (row.part == ProfilePart::backward && row.kernel_ns > 0) backward.insert(row.layer + ' ' + row.what);
  }
  Trace trace;
  model_->output_shape(shape_, &trace);
  std::int64_t layers = 0;
  for (const LayerCost& layer : trace) {
    if (layer.kind != "conv2d" && layer.kind != "linear" && layer.kind != "batch_norm") continue;
    ++layers;
    EXPECT_TRUE(forward.contains(layer.path + ' ' + layer.kind)) << layer.path;
    EXPECT_TRUE(backward.contains(layer.path + ' ' + layer.kind)) << layer.path;
  }
  EXPECT_EQ(layers, 19 + 1 + 19);
  EXPECT_TRUE(forward.contains(" cross_entropy"));
}

TEST_F(ProfiledSteps, FlopsAreThoseOfTheTrace) {
  const ProfileReport report = profile(2);
  Trace trace;
  model_->output_shape(shape_, &trace);
  const std::int64_t macs = total_cost(*model_, shape_).macs * kBatch * report.steps();
  EXPECT_EQ(flops_of(report, ProfilePart::forward), 2 * macs);
  const std::int64_t first = trace.front().macs * kBatch * report.steps();  // the images need no gradient
  EXPECT_GT(first, 0);
  EXPECT_EQ(flops_of(report, ProfilePart::backward), 4 * macs - 2 * first);
}

TEST_F(ProfiledSteps, WhatIsNoOpIsTold) {
  std::set<std::string> parts;
  for (const ProfileRow& row : profile(1).rows) {
    if (row.layer.empty()) parts.insert(str(name_of(row.part), ' ', row.what));
  }
  for (const char* part : {"update sgd", "metrics loss", "hooks on_step_begin", "hooks after_step"}) {
    EXPECT_TRUE(parts.contains(part)) << part;
  }
}

TEST_F(ProfiledSteps, AStageThatBeginsWarmsUpAgain) {
  StepProfiler profiler(5, kPeaks);
  std::int64_t taken = 0;
  const auto take = [&] { ++taken; };
  for (int i = 0; i < StepProfiler::kWarmUp; ++i) profiler.step(take);
  EXPECT_EQ(profiler.steps(), 0);
  profiler.begin_stage();
  for (int i = 0; i < StepProfiler::kWarmUp; ++i) profiler.step(take);
  EXPECT_EQ(profiler.steps(), 0);
  profiler.step(take);
  EXPECT_EQ(profiler.steps(), 1);
  EXPECT_EQ(taken, 2 * StepProfiler::kWarmUp + 1);
  EXPECT_EQ(Profile::active(), nullptr);
}

TEST(MachinePeaks, AreMeasured) {
  const MachinePeaks peaks = measure_peaks(2);
  EXPECT_EQ(peaks.threads, 2);
  EXPECT_GT(peaks.gflops, 0);
  EXPECT_GT(peaks.gbytes, 0);
}

TEST(CheckProfiled, AGpuIsRefusedWithTheToolForIt) {
  EXPECT_NO_THROW(check_profiled(Device::cpu()));
  try {
    check_profiled(Device::cuda(1));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              "--profile: the device is cuda:1, whose kernels run behind the host's clock; use nsys profile --trace=cuda,nvtx "
              "tessera ..., where ranges are named after ops, or device=cpu");
  }
}

}  // namespace
}  // namespace tessera
