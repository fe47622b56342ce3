#include "bench/rivals/torch_finalists.h"

#include <gtest/gtest.h>

#include "bench/result_lines.h"

namespace tessera::bench {
namespace {

struct NamedWay {
  std::string name;
};

std::string to_string(const NamedWay& way) { return way.name; }

Value to_value(const NamedWay& way) {
  Value value = Value::map();
  value.set("name", way.name);
  return value;
}

// Sets the time that the way's name states, or fails as the name says.
void measure(const NamedWay& way, Value& row) {
  if (way.name == "ends") throw IoError("child: it ended");
  if (way.name == "fails") {
    row.set("failed", "no such mode");
  } else {
    row.set("ms", std::stod(way.name));
  }
}

std::vector<std::string> names(const std::vector<NamedWay>& ways) {
  std::vector<std::string> out;
  for (const NamedWay& way : ways) out.push_back(way.name);
  return out;
}

TEST(SweepTorch, RunsVariantsOfTheTwoFastestAndKeepsThreeNearTheBest) {
  const std::vector<NamedWay> ways{{"12"}, {"ends"}, {"11.6"}, {"10.1"}, {"fails"}, {"11.5"}, {"10.2"}};
  const auto variants_of = [](const NamedWay& way) { return std::vector<NamedWay>{{way.name == "10.1" ? "10" : "30"}}; };
  const TorchSweep<NamedWay> swept = sweep_torch(ways, variants_of, measure);
  EXPECT_EQ(names(swept.finalists), (std::vector<std::string>{"10", "10.1", "10.2"}));
  ASSERT_EQ(swept.rows.as_list().size(), 9u);
  EXPECT_EQ(swept.rows.as_list()[1].at("failed").as_string(), "child: it ended");
  EXPECT_EQ(swept.rows.as_list()[4].at("failed").as_string(), "no such mode");
  EXPECT_EQ(swept.rows.as_list()[7].at("ms").as_double(), 10);
  EXPECT_EQ(swept.rows.as_list()[8].at("ms").as_double(), 30);
}

TEST(SweepTorch, KeepsWhatIsWithinHalfOfTheBestOnly) {
  const auto none = [](const NamedWay&) { return std::vector<NamedWay>{}; };
  const std::vector<NamedWay> ways{{"30.1"}, {"29.9"}, {"20"}};
  EXPECT_EQ(names(sweep_torch(ways, none, measure).finalists), (std::vector<std::string>{"20", "29.9"}));
  const std::vector<NamedWay> close{{"20.5"}, {"20"}, {"21"}, {"22.1"}};
  EXPECT_EQ(names(sweep_torch(close, none, measure, {.share = 1.1, .most = 2}).finalists),
            (std::vector<std::string>{"20", "20.5"}));
  EXPECT_THROW(sweep_torch(std::vector<NamedWay>{{"ends"}, {"fails"}}, none, measure), InternalError);
}

// The second finalist has the lowest median, the first the lowest sample.
TEST(FinalistTimes, TheRivalIsTheLowestMedianAndRatiosAreOfRounds) {
  const FinalistTimes times({{4, 8, 2}, {5}}, {{{1, 20, 20}}, {{8, 4, 8}, {7}}});
  EXPECT_EQ(times.best, 1u);
  Value row = Value::map();
  report_times(row, times, std::vector<NamedWay>{{"a"}, {"b"}});
  EXPECT_EQ(row.at("tessera_ms").at("median").as_double(), 4);
  EXPECT_EQ(row.at("torch_ms").at("median").as_double(), 8);
  EXPECT_EQ(row.at("ratio").at("median").as_double(), 2);  // median of 2, 0.5 and 4
  EXPECT_EQ(row.at("ratio").at("of_medians").as_double(), 2);
  EXPECT_EQ(numbers(row.at("torch_ms").at("rounds")), (std::vector<double>{8, 4, 8}));
  EXPECT_EQ(row.at("tessera_ms").at("alone").as_double(), 5);
  EXPECT_EQ(row.at("torch_ms").at("alone").as_double(), 7);
  EXPECT_EQ(row.at("torch_settings").at("name").as_string(), "b");
  EXPECT_EQ(row.at("torch_settings").find("ms"), nullptr);
  const Value::List& finalists = row.at("torch_finalists").as_list();
  ASSERT_EQ(finalists.size(), 2u);
  EXPECT_EQ(finalists[0].at("name").as_string(), "a");
  EXPECT_EQ(finalists[0].at("ms").at("median").as_double(), 20);
  EXPECT_EQ(numbers(finalists[0].at("ms").at("rounds")), (std::vector<double>{1, 20, 20}));
  EXPECT_EQ(finalists[1].at("ms").at("median").as_double(), 8);
}

}  // namespace
}  // namespace tessera::bench
