#include "bench/rivals/modes_rival.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/support/error.h"
#include "tests/bench/fake_torch.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

using ModesRivalTest = FakeTorch;

// "quick" takes 4 ms, and in channels_last 2 ms, or 1 ms if threads spin, or 1.05 ms in one thread. "close" takes 30 ms, and in
// channels_last 2.1 ms. "broken" cannot be built, and torch exits under "deadly".
constexpr const char* kWays = R"(values)
  if [ $word = deadly ]; then exit 3; fi
  if [ $word = broken ]; then echo '{"failed": "no such mode"}'; else echo '{"values": [1, -2, 0.5]}'; fi ;;
time)
  case $word$layout$threads${OMP_WAIT_POLICY-none} in
    quick--channels-last2passive) ms=2 ;;
    quick--channels-last2none) ms=1 ;;
    quick--channels-last1passive) ms=1.05 ;;
    close--channels-last*) ms=2.1 ;;
    quick*) ms=4 ;;
    *) ms=30 ;;
  esac
  list=$ms
  while [ $count -gt 1 ]; do list="$list, $ms"; count=$((count - 1)); done
  echo "{\"ms\": [$list]}" ;;)";

constexpr const char* kModes = R"({"modes": ["broken", "deadly", "close", "quick"]})";

TEST_F(ModesRivalTest, TheSweepTriesAllWaysAndSaysWhatFailed) {
  const TorchProgram torch = program(kModes, kWays);
  const TorchSweep<ModeWay> swept = sweep_ways(torch, {.least_runs = 3}, {1, -2, 0.5});
  const Value::List& rows = swept.rows.as_list();
  ASSERT_EQ(rows.size(), 4 * all_torch_settings().size() + kLeaders);
  EXPECT_EQ(rows.at(0).at("failed").as_string(), "no such mode");
  EXPECT_EQ(rows.at(1).at("failed").as_string(), "child: it ended without an answer (exit status 3)");
  EXPECT_EQ(rows.at(2).at("ms").as_double(), 2.1);
  EXPECT_EQ(rows.at(3).at("ms").as_double(), 2);
  for (std::size_t i = rows.size() - kLeaders; i < rows.size(); ++i) {
    EXPECT_EQ(rows.at(i).at("wait_policy").as_string(), "default");
    EXPECT_EQ(rows.at(i).at("ms").as_double(), 1);
  }
  ASSERT_EQ(swept.finalists.size(), kLeaders);
  for (const ModeWay& way : swept.finalists) {
    EXPECT_EQ(way.mode, "quick");
    EXPECT_TRUE(way.settings.channels_last);
    EXPECT_FALSE(way.settings.passive);
  }
  ModesRival rival(torch, swept.finalists.front(), {1, -2, 0.5});
  EXPECT_EQ(rival.value_difference(), 0);
  EXPECT_EQ(rival.run(4), (std::vector<double>{1, 1, 1, 1}));
}

TEST_F(ModesRivalTest, OneThreadIsTriedWhereAskedFor) {
  const TorchProgram torch = program(kModes, kWays);
  const TorchSweep<ModeWay> swept = sweep_ways(torch, {.least_runs = 3, .one_thread = true}, {1, -2, 0.5});
  EXPECT_EQ(swept.rows.as_list().size(), 4 * all_torch_settings().size() + 2 * kLeaders);
  ASSERT_EQ(swept.finalists.size(), kFinalists);
  EXPECT_FALSE(swept.finalists[1].settings.one_thread);
  EXPECT_TRUE(swept.finalists[2].settings.one_thread);
  EXPECT_TRUE(swept.finalists[2].settings.passive);
}

TEST_F(ModesRivalTest, OnlySomeWaysAreSweptWhereAskedFor) {
  const TorchProgram torch = program(kModes, kWays);
  const TorchSweep<ModeWay> swept =
      sweep_ways(torch, {.least_runs = 3, .only = "quick, contiguous, avx2, default"}, {1, -2, 0.5});
  ASSERT_EQ(swept.rows.as_list().size(), 2u);  // two wait policies
  EXPECT_EQ(swept.finalists.front().mode, "quick");
  EXPECT_EQ(message_of<ConfigError>([&] {
              sweep_ways(torch, {.only = "slow"}, {1, -2, 0.5});
            }),
            "'slow' is in none of torch's ways; they read like 'torch broken, channels_last, avx2, default malloc'");
}

TEST_F(ModesRivalTest, ValuesMayBeFurtherOffWhereTheOptionsSaySo) {
  const TorchProgram torch = program(R"({"modes": ["quick"]})", kWays);
  const std::vector<float> near{1, -2, 0.53f};
  EXPECT_THROW(sweep_ways(torch, {.least_runs = 1, .only = "contiguous, avx2"}, near), NumericError);
  EXPECT_NO_THROW(sweep_ways(torch, {.least_runs = 1, .tolerance = 2e-2, .only = "contiguous, avx2"}, near));
  EXPECT_NEAR(ModesRival(torch, {{}, "quick"}, near, 2e-2).value_difference(), 0.015, 1e-6);
}

TEST_F(ModesRivalTest, OtherValuesVoidTheSweep) {
  const TorchProgram torch = program(R"({"modes": ["quick"]})", kWays);
  const std::string message = message_of<NumericError>([&] { sweep_ways(torch, {.least_runs = 1}, {1, -2, 0.75}); });
  const std::string start = "values differ from those of torch quick, channels_last, avx2, default malloc by 0.25";
  EXPECT_TRUE(message.starts_with(start)) << message;
}

TEST(CheckValues, IsRelativeToTheLargestAndRefusesNaN) {
  EXPECT_NEAR(check_values({100.005f, 1}, {100, 1}, "torch"), 5e-5, 1e-6);  // 0.005 of 100, in float
  EXPECT_THROW(check_values({100.02f, 1}, {100, 1}, "torch"), NumericError);
  EXPECT_THROW(check_values({1, NAN}, {1, NAN}, "torch"), NumericError);
  EXPECT_EQ(message_of<NumericError>([] { check_values({1, 2}, {1}, "torch"); }), "torch gives 1 values, ours are 2");
}

}  // namespace
}  // namespace tessera::bench
