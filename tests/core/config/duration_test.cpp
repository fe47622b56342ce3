#include "core/config/duration.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "core/support/error.h"

namespace tessera {
namespace {

TEST(Duration, ParsesTheThreeForms) {
  EXPECT_EQ(Duration::parse("10e"), Duration::epochs(10));
  EXPECT_EQ(Duration::parse("0.5e"), Duration::epochs(0.5));
  EXPECT_EQ(Duration::parse("5000s"), Duration::steps(5000));
  EXPECT_EQ(Duration::parse("20%"), Duration::percent(20));
  EXPECT_EQ(Duration::parse("0s"), Duration::steps(0));
}

TEST(Duration, RefusesEverythingElse) {
  for (const char* text : {"", "e", "10", "10 e", "-1e", "+1e", "1e3s", "infe", "nane", ".5e", "10ee", "10E", "0.5s", "101%",
                           "1e99e",
                           "99999999999999e", "0x10e", "10m"}) {
    EXPECT_THROW(Duration::parse(text), ConfigError) << text;
  }
}

TEST(Duration, NamesTheThreeForms) {
  try {
    Duration::parse("10 epochs");
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "'10 epochs' is no length of training; write 10e (epochs), 5000s (steps) or 20% (of the stage)");
  }
}

TEST(Duration, ResolvesToTheNearestStep) {
  EXPECT_EQ(Duration::epochs(2.5).resolve(7, 100), 18);
  EXPECT_EQ(Duration::steps(13).resolve(7, 100), 13);
  EXPECT_EQ(Duration::percent(20).resolve(7, 101), 20);
  EXPECT_EQ(Duration::percent(100).resolve(7, 101), 101);
  EXPECT_EQ(Duration::epochs(0).resolve(7, 101), 0);
  EXPECT_THROW(Duration::epochs(1e12).resolve(INT64_C(1) << 40, 1), ConfigError);
}

RC_GTEST_PROP(Duration, ReadsBackWhatItWrites, ()) {
  const double amount = *rc::gen::inRange<std::int64_t>(0, 1'000'000) / 7.0;
  for (const Duration duration :
       {Duration::epochs(amount), Duration::steps(std::floor(amount)), Duration::percent(amount / 2000)}) {
    RC_ASSERT(Duration::parse(to_string(duration)) == duration);
  }
}

}  // namespace
}  // namespace tessera
