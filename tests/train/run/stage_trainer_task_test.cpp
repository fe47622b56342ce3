// Training by a task other than image classification.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/ops/mse.h"
#include "core/rng.h"
#include "layers/linear.h"
#include "train/run/stage_trainer.h"

namespace tessera {
namespace {

// Has no classes or labels. Its metric is the distance to numbers from the batch; less is better.
class Regression final : public Task {
 public:
  std::string_view name() const override { return "regression"; }
  std::span<const Metric> metrics() const override {
    static constexpr std::array<Metric, 1> metrics{
        Metric{.key = "distance", .column = "distance", .heading = "distance", .more_is_better = false}};
    return metrics;
  }
  std::string_view throughput_unit() const override { return "rows/s"; }
  std::int64_t units_per_sample(const Dataset&) const override { return 1; }
  std::span<const Table> tables() const override { return {}; }
  Var loss(const Var& output, const Batch& batch, const LossConfig&) const override {
    return mse(output, Var(batch.at("target")));
  }
  void check_output(const Shape&, const Dataset&) const override {}
  std::unique_ptr<SummedScore> score() const override { return nullptr; }
  std::unique_ptr<TaskDetails> details(const Subset&, const DetailOptions&) const override { return nullptr; }
};

TEST(StageTrainerTask, IsWhatTheStageLearns) {
  const Regression task;
  Linear model({.in = 5, .out = 3});
  initialize(model, 1);
  Batch batch{{"x", Tensor::empty({6, 5})}, {"weight", Tensor::zeros({6})}, {"target", Tensor::full({6, 3}, 0.5)}};
  fill_normal(batch.input(), RngStream(3, "test", "x"), 0, 1);
  TrainingConfig config;
  config.optimizer.form = SgdConfig{.lr = 0.1, .momentum = 0};
  config.micro_batch = 4;
  StageTrainer trainer(model, config, task, 1, 40, 40);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < 40; ++step) {
    trainer.step(batch, step, step);
    losses.push_back(trainer.take_mean_loss());
  }
  EXPECT_GT(losses.front(), 0.2);
  EXPECT_LT(losses.back(), losses.front() / 10);
}

}  // namespace
}  // namespace tessera
