#include "bench/torch_finalists.h"

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

Value way(const char* name) {
  Value value = Value::map();
  value.set("name", name);
  return value;
}

// The second finalist has the lowest median, the first the lowest sample.
TEST(FinalistTimes, TheRivalIsTheLowestMedianAndRatiosAreOfRounds) {
  const FinalistTimes times({4, 8, 2}, {{1, 20, 20}, {8, 4, 8}});
  EXPECT_EQ(times.best, 1u);
  Value row = Value::map();
  set_times(row, times, {way("a"), way("b")});
  EXPECT_EQ(row.at("tessera_ms").at("median").as_double(), 4);
  EXPECT_EQ(row.at("torch_ms").at("median").as_double(), 8);
  EXPECT_EQ(row.at("ratio").at("median").as_double(), 2);  // of 2, 0.5 and 4
  EXPECT_EQ(row.at("torch_settings").at("name").as_string(), "b");
  EXPECT_EQ(row.at("torch_settings").find("ms"), nullptr);
  const Value::List& finalists = row.at("torch_finalists").as_list();
  ASSERT_EQ(finalists.size(), 2u);
  EXPECT_EQ(finalists[0].at("name").as_string(), "a");
  EXPECT_EQ(finalists[0].at("ms").at("median").as_double(), 20);
  EXPECT_EQ(finalists[1].at("ms").at("median").as_double(), 8);
}

}  // namespace
}  // namespace tessera::bench
