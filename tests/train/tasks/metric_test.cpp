#include "train/tasks/metric.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/config/read.h"
#include "core/support/error.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

constexpr Metric kPerplexity{.key = "perplexity", .column = "perplexity", .heading = "perplexity", .more_is_better = false};

TEST(Metric, LessMayBeBetter) {
  const Metric& accuracy = metric_of("accuracy");
  EXPECT_TRUE(accuracy.better(0.5, 0.25));
  EXPECT_FALSE(accuracy.better(0.5, 0.5));
  EXPECT_TRUE(accuracy.within(0.5, 0.75, 0.25));
  EXPECT_FALSE(accuracy.within(0.25, 0.75, 0.25));
  EXPECT_TRUE(kPerplexity.better(20, 30));
  EXPECT_FALSE(kPerplexity.better(30, 30));
  EXPECT_TRUE(kPerplexity.within(31, 30, 1));
  EXPECT_FALSE(kPerplexity.within(32, 30, 1));
}

TEST(Metric, FractionsAreReadInPerCent) {
  const Metric& accuracy = metric_of("accuracy");
  EXPECT_EQ(text_of(accuracy, 0.9328), "93.28 %");
  EXPECT_EQ(cell_of(accuracy, 0.9328, 1), "93.3");
  EXPECT_EQ(heading_of(accuracy), "top-1 %");
  EXPECT_EQ(text_of(kPerplexity, 31.5), "31.5");
  EXPECT_EQ(heading_of(kPerplexity), "perplexity");
  EXPECT_EQ(in_unit(kPerplexity, 31.5), 31.5);
}

struct Record {
  std::optional<Scored> best;
  void fields(Fields& f) { add_scored(f, "best_", best, {.help = "best value"}); }
};

TEST(Metric, AValueIsWrittenUnderItsMetricsName) {
  const Value written = write(Record{Scored{"accuracy", 0.75}});
  EXPECT_EQ(to_json(written), R"({"best_accuracy":0.75})");
  const auto again = read<Record>(written);
  EXPECT_EQ(again.best.value().metric, "accuracy");
  EXPECT_EQ(again.best.value().value, 0.75);
  EXPECT_FALSE(read<Record>(write(Record{})).best);
}

TEST(Tasks, EachIsDecidedByAMetricOfItsOwn) {
  std::vector<std::string_view> keys, columns;
  for (const Task* task : builtin_tasks()) {
    ASSERT_FALSE(task->metrics().empty()) << task->name();
    keys.push_back(task->metrics().front().key);
    columns.push_back(task->metrics().front().column);
    EXPECT_EQ(&metric_of(keys.back()), &task->metrics().front());
  }
  for (std::vector<std::string_view>* names : {&keys, &columns}) {
    std::ranges::sort(*names);
    EXPECT_EQ(std::ranges::adjacent_find(*names), names->end());
  }
  for (const std::string_view name : dataset_names()) {
    DataConfig config;
    set_form(config.form, name);
    EXPECT_NO_THROW(task_of(config)) << name;
  }
  EXPECT_THROW(metric_of("no metric"), InternalError);
}

}  // namespace
}  // namespace tessera
