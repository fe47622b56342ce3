// When and how far a stage prunes, compared with the formulas.
#include "compress/prune/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::testing {
namespace {

using Steps = std::vector<std::int64_t>;
constexpr StageLength kStage{.steps = 1000, .steps_per_epoch = 90};

SparsityConfig sparsity(const char* schedule, Duration begin, Duration end, Duration every, double target = 0.9) {
  SparsityConfig config;
  config.target = target;
  config.schedule = schedule;
  config.begin = begin;
  config.end = end;
  config.every = every;
  return config;
}

TEST(PruningSchedule, PrunesFromBeginToEndInAnyCase) {
  EXPECT_EQ(pruning_steps(sparsity("cubic", Duration::percent(10), Duration::steps(400), Duration::steps(100)), kStage),
            (Steps{100, 200, 300, 400}));
  EXPECT_EQ(pruning_steps(sparsity("cubic", Duration::epochs(1), Duration::steps(400), Duration::steps(150)), kStage),
            (Steps{90, 240, 390, 400}));
  EXPECT_EQ(pruning_steps(sparsity("cubic", Duration::steps(0), Duration::steps(30), Duration::epochs(1)), kStage),
            (Steps{0, 30}));
  EXPECT_EQ(pruning_steps(sparsity("cubic", Duration::percent(5), Duration::percent(35), Duration::percent(12.5)), kStage),
            (Steps{50, 175, 300, 350}));
  EXPECT_TRUE(pruning_steps(sparsity("cubic", Duration::steps(31), Duration::steps(30), Duration::steps(1)), kStage).empty());
}

TEST(PruningSchedule, WithoutEndAndEveryItStopsAtThreeQuarters) {
  SparsityConfig config;
  EXPECT_EQ(pruning_steps(config, kStage), (Steps{0, 100, 200, 300, 400, 500, 600, 700, 750}));
  config.schedule = "one_shot";
  config.begin = Duration::steps(7);
  EXPECT_EQ(pruning_steps(config, kStage), (Steps{7}));
}

// Zhu and Gupta 2017, equation 1.
TEST(PruningSchedule, CubicFollowsItsEquation) {
  const SparsityConfig config = sparsity("cubic", Duration::steps(100), Duration::steps(500), Duration::steps(100));
  for (const double initial : {0.0, 0.3}) {
    EXPECT_NEAR(sparsity_after(config, kStage, 100, {.initial = initial, .target = config.target}), initial, 1e-12);
    for (const std::int64_t step : {200, 300, 400}) {
      const double t = static_cast<double>(step - 100) / 400;
      EXPECT_NEAR(sparsity_after(config, kStage, step, {.initial = initial, .target = config.target}),
                  0.9 + (initial - 0.9) * std::pow(1 - t, 3), 1e-12);
    }
    EXPECT_EQ(sparsity_after(config, kStage, 500, {.initial = initial, .target = config.target}), 0.9) << "exactly";
  }
}

TEST(PruningSchedule, IterativeTakesTheSameShareOfWhatIsLeft) {
  const SparsityConfig config = sparsity("iterative", Duration::steps(0), Duration::steps(300), Duration::steps(100));
  double left = 1;
  for (const std::int64_t step : {0, 100, 200}) {
    const double now = 1 - sparsity_after(config, kStage, step, {.initial = 0, .target = config.target});
    EXPECT_NEAR(now / left, std::pow(0.1, 0.25), 1e-12) << step;
    left = now;
  }
  EXPECT_EQ(sparsity_after(config, kStage, 300, {.initial = 0, .target = config.target}), 0.9);
}

TEST(PruningSchedule, OneShotIsThereAtOnce) {
  SparsityConfig config;
  config.target = 0.5;
  config.schedule = "one_shot";
  EXPECT_EQ(sparsity_after(config, kStage, 0, {.initial = 0, .target = config.target}), 0.5);
}

}  // namespace
}  // namespace tessera::testing
