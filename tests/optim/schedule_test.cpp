#include "optim/schedule.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "core/support/error.h"

namespace tessera {
namespace {

struct Row {
  std::int64_t step;
  double lr;
};

void expect_rows(const ScheduleConfig& config, const StageLength& stage, double base, const std::vector<Row>& rows) {
  for (const Row& row : rows) EXPECT_NEAR(scheduled_lr(config, base, row.step, stage), row.lr, 1e-12) << "step " << row.step;
}

TEST(Schedule, ConstantWithWarmupRisesInStraightLine) {
  expect_rows({ConstantSchedule{}}, {100, 10}, 0.4, {{0, 0.4}, {99, 0.4}});
  expect_rows({ConstantSchedule{.warmup = Duration::steps(4)}}, {100, 10}, 0.4,
              {{0, 0.1}, {1, 0.2}, {3, 0.4}, {4, 0.4}, {99, 0.4}});
}

TEST(Schedule, StepFallsAtMultiplesOrMilestones) {
  expect_rows({StepSchedule{.gamma = 0.5, .every = Duration::epochs(3)}}, {100, 10}, 0.8,
              {{0, 0.8}, {29, 0.8}, {30, 0.4}, {59, 0.4}, {60, 0.2}, {99, 0.1}});
  expect_rows({StepSchedule{.gamma = 0.1, .milestones = {"50%", "75s"}}}, {100, 10}, 1,
              {{49, 1}, {50, 0.1}, {74, 0.1}, {75, 0.01}});
}

TEST(Schedule, CosineFallsToMinimum) {
  const ScheduleConfig config{CosineSchedule{.min = 0.2}};
  const double eighth = 0.4 * 0.70710678118654752;  // the amplitude times cos(pi / 4)
  expect_rows(config, {100, 10}, 1, {{0, 1}, {25, 0.6 + eighth}, {50, 0.6}, {75, 0.6 - eighth}});
  expect_rows({CosineSchedule{.warmup = Duration::percent(20)}}, {100, 10}, 1, {{9, 0.5}, {19, 1}, {20, 1}, {60, 0.5}});
  // After the end the value of the last step holds.
  EXPECT_EQ(scheduled_lr(config, 1, 1000, {100, 10}), scheduled_lr(config, 1, 99, {100, 10}));
}

TEST(Schedule, PolyFallsByItsPower) {
  expect_rows({PolySchedule{.power = 2}}, {10, 10}, 1, {{0, 1}, {5, 0.25}, {9, 0.01}});
  expect_rows({PolySchedule{.power = 1, .min = 0.5}}, {10, 10}, 1, {{0, 1}, {5, 0.75}});
}

TEST(Schedule, OneCyclePeaksAndEndsLow) {
  // The values of torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=10, pct_start=0.3) at its corners.
  expect_rows({OneCycleSchedule{}}, {10, 10}, 1, {{0, 0.04}, {1, 0.52}, {2, 1}, {9, 4e-6}});
  expect_rows({OneCycleSchedule{.rise = 0}}, {10, 10}, 1, {{0, 1}, {9, 4e-6}});
}

TEST(Schedule, LastsForStagesOfOneStep) {
  for (const ScheduleConfig& config :
       {ScheduleConfig{ConstantSchedule{}}, ScheduleConfig{CosineSchedule{}}, ScheduleConfig{PolySchedule{}}}) {
    EXPECT_EQ(scheduled_lr(config, 1, 0, {1, 1}), 1);
  }
  const double lr = scheduled_lr({OneCycleSchedule{}}, 1, 0, {1, 1});
  EXPECT_TRUE(lr > 0 && lr <= 1);
  EXPECT_THROW(scheduled_lr({ConstantSchedule{}}, 1, -1, {1, 1}), InternalError);
}

TEST(Schedule, ReadsItsBlock) {
  const auto config = read<ScheduleConfig>(parse_json(R"({"name": "cosine", "warmup": "5e"})", "test"));
  EXPECT_EQ(std::get<CosineSchedule>(config.form).warmup, Duration::epochs(5));
  for (const char* json : {R"({"name": "cosin"})", R"({"name": "step"})", R"({"name": "step", "milestones": ["4 epochs"]})",
                           R"({"name": "step", "every": "3e", "milestones": ["4e"]})",
                           R"({"name": "one_cycle", "warmup": "5e"})"}) {
    EXPECT_THROW(read<ScheduleConfig>(parse_json(json, "test")), ConfigError) << json;
  }
}

}  // namespace
}  // namespace tessera
