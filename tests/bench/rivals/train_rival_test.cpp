#include "bench/rivals/train_rival.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/support/error.h"
#include "tests/bench/fake_torch.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

using TrainRivalTest = FakeTorch;

// A step takes 5 ms, or 4 ms in channels_last: there 2 ms with the tuned malloc, or 2.2 ms with it and the default wait policy.
// Torch aborts if it compiles in the contiguous layout. Its memory is 300 KiB, or 500 KiB in channels_last.
constexpr const char* kSteps = R"(step)
  case $layout$compiled in --compiled) kill -ABRT $$ ;; esac
  case $layout${MALLOC_TOP_PAD_+tuned}${OMP_WAIT_POLICY-none} in
    --channels-lasttunedpassive) ms=2 ;;
    --channels-lasttunednone) ms=2.2 ;;
    --channels-last*) ms=4 ;;
    *) ms=5 ;;
  esac
  list=$ms
  losses=2.5
  while [ $word -gt 1 ]; do list="$list, $ms"; losses="$losses, 2"; word=$((word - 1)); done
  echo "{\"ms\": [$list], \"loss\": [$losses]}" ;;
memory) if [ $layout ]; then echo '{"start_kib": 100, "peak_kib": 600}'; else echo '{"start_kib": 100, "peak_kib": 400}'; fi ;;)";

const FirstLosses kLosses{{2.5, 2, 2}, 1e-4};

TEST_F(TrainRivalTest, TheSweepTriesTheOtherWaitPolicyUnderTheBest) {
  const TorchProgram torch = program(R"({"compiles": false})", kSteps);
  const TorchSweep<TorchSettings> swept = sweep_training(torch, {2}, kLosses);
  const Value::List& rows = swept.rows.as_list();
  ASSERT_EQ(rows.size(), all_torch_settings().size() + kLeaders);
  EXPECT_EQ(rows.at(0).at("ms").as_double(), 4);
  EXPECT_EQ(rows.back().at("wait_policy").as_string(), "default");
  EXPECT_EQ(least_memory_kib(swept.rows), 300);
  ASSERT_FALSE(swept.finalists.empty());
  EXPECT_EQ(swept.finalists.front(), (TorchSettings{.tuned_malloc = true}));
  for (const TorchSettings& settings : swept.finalists) EXPECT_TRUE(settings.channels_last && settings.tuned_malloc);
  EXPECT_FALSE(swept.finalists.back().passive);  // 2.2 ms is within the share
}

TEST_F(TrainRivalTest, OnlySomeSettingsAreSweptWhereAskedFor) {
  const TorchProgram torch = program(R"({"compiles": true})", kSteps);
  const TorchSweep<TorchSettings> swept = sweep_training(torch, {.steps = 2, .only = "eager, contiguous, avx2"}, kLosses);
  const Value::List& rows = swept.rows.as_list();
  ASSERT_EQ(rows.size(), 2 + kLeaders);  // both mallocs, then both with the other wait policy
  for (const Value& row : rows) EXPECT_FALSE(row.at("channels_last").as_bool() || row.at("compiled").as_bool());
  const TorchSweep<TorchSettings> without_images = sweep_training(torch, {.steps = 2, .images = false}, kLosses);
  for (const Value& row : without_images.rows.as_list()) {
    EXPECT_FALSE(row.at("channels_last").as_bool());
  }
  EXPECT_EQ(message_of<ConfigError>([&] { sweep_training(torch, {.only = "eager, avx3"}, kLosses); }),
            "'eager, avx3' is in none of torch's settings; they read like 'eager, channels_last, avx2, default malloc'");
}

// On a GPU: eager and recorded in either layout; compiled only in channels_last, recorded and, as that loss is off, alone.
TEST_F(TrainRivalTest, OnAGpuTheSweepTriesLayoutsGraphsAndTheCompilerAndLeavesOutWhatIsOff) {
  TorchProgram torch = program(R"({"compiles": true})", R"(step)
  if [ $compiled ]; then loss=3; else loss=2.5; fi
  case $layout in --channels-last) ms=2 ;; *) ms=5 ;; esac
  echo "{\"ms\": [$ms], \"loss\": [$loss]}" ;;
memory) echo '{"start_kib": 0, "peak_kib": 7}' ;;)");
  torch.cuda = true;
  const TorchSweep<TorchSettings> swept = sweep_training(torch, {1}, {{2.5}, 1e-4});
  ASSERT_EQ(swept.rows.as_list().size(), 6u);
  for (const Value& row : swept.rows.as_list()) {
    EXPECT_EQ(row.find("failed") != nullptr, row.at("compiled").as_bool());
    EXPECT_EQ(row.find("wait_policy"), nullptr);
  }
  ASSERT_EQ(swept.finalists.size(), 2u);  // eager and recorded; the other layout is too slow
  for (const TorchSettings& settings : swept.finalists)
    EXPECT_TRUE(settings.cuda && settings.channels_last && !settings.compiled);
  EXPECT_EQ(to_string(swept.finalists.back()), "cuda, channels_last, graphs");
  EXPECT_FALSE(swept.rows.as_list().back().at("graphs").as_bool());
}

// Recorded steps take a third of an eager one's time. The compiler works with graphs and is not tried without.
TEST_F(TrainRivalTest, OnAGpuTheFasterEagerWayTakesPartHoweverSlowItIs) {
  TorchProgram torch = program(R"({"compiles": true})", R"(step)
  case $*:$layout in *--graphs*) ms=1 ;; *:--channels-last) ms=3 ;; *) ms=4 ;; esac
  echo "{\"ms\": [$ms], \"loss\": [2.5]}" ;;
memory) echo '{"start_kib": 0, "peak_kib": 7}' ;;)");
  torch.cuda = true;
  TorchSweep<TorchSettings> swept = sweep_training(torch, {1}, {{2.5}, 1e-4});
  EXPECT_EQ(swept.rows.as_list().size(), 5u);
  ASSERT_EQ(swept.finalists.size(), 2u);
  for (const TorchSettings& settings : swept.finalists) EXPECT_FALSE(is_eager(settings));
  add_eager(swept);
  ASSERT_EQ(swept.finalists.size(), 3u);
  EXPECT_EQ(swept.finalists.back(), (TorchSettings{.cuda = true}));
  add_eager(swept);
  EXPECT_EQ(swept.finalists.size(), 3u);
}

TEST_F(TrainRivalTest, TheSweepGoesOnWhereTorchEndsAndSaysHow) {
  const TorchProgram torch = program(R"({"compiles": true})", kSteps);
  const Value rows = sweep_training(torch, {2}, kLosses).rows;
  ASSERT_EQ(rows.as_list().size(), 2 * all_torch_settings().size() + kLeaders);
  std::size_t failed = 0;
  for (const Value& row : rows.as_list()) {
    if (row.find("failed") == nullptr) continue;
    ++failed;
    EXPECT_EQ(row.at("failed").as_string(), "child: it ended without an answer (signal 6, Aborted)");
    EXPECT_TRUE(row.at("compiled").as_bool());
    EXPECT_EQ(row.find("ms"), nullptr);
  }
  EXPECT_EQ(failed, all_torch_settings().size() / 2);
}

TEST_F(TrainRivalTest, ThereIsNoRivalWhereAllFail) {
  const TorchProgram torch = program(R"({"compiles": false})", "step) exit 1 ;;");
  EXPECT_EQ(message_of<InternalError>([&] { sweep_training(torch, {2}, kLosses); }),
            "torch fails in each of its ways: there is no rival");
}

TEST_F(TrainRivalTest, OtherFirstLossesVoidTheComparison) {
  const TorchProgram torch = program(R"({"compiles": false})", kSteps);
  EXPECT_EQ(TrainRival(torch, {}, kLosses).losses(), kLosses.values);
  const FirstLosses close{{2.5002, 2, 2}, 1e-4};
  EXPECT_NO_THROW(TrainRival(torch, {}, close));
  EXPECT_EQ(
      message_of<NumericError>([&] {
        TrainRival(torch, {}, {{2.5, 2, 2.25}, 1e-4});
      }),
      "loss of step 2 is 2.25, torch's (channels_last, avx2, default malloc) is 2; they must agree to 0.0001 of their value");
  EXPECT_THROW(sweep_training(torch, {2}, {{2.5, NAN}, 1e-4}), NumericError);
}

}  // namespace
}  // namespace tessera::bench
