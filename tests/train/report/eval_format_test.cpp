#include <gtest/gtest.h>

#include "core/support/error.h"
#include "train/report/eval_report.h"

namespace tessera {
namespace {

// Class i is taken for class i + 1 in i of 10 samples.
EvalReport report_of(std::size_t classes) {
  EvalReport report;
  report.run = "runs/x/1";
  report.stage = "dense";
  report.step = 7;
  report.split = "test";
  report.confusion.assign(classes * classes, 0);
  for (std::size_t i = 0; i < classes; ++i) {
    report.classes.push_back(str("class ", i));
    const auto wrong = static_cast<std::int64_t>(i % 10);
    report.confusion[i * classes + i] += 10 - wrong;
    report.confusion[i * classes + (i + 1) % classes] += wrong;
    report.total.samples += 10;
    report.total.correct += 10 - wrong;
  }
  return report;
}

TEST(EvalFormat, FewClassesHaveAMatrixHeadedByTheirNames) {
  EvalReport report = report_of(3);
  report.total.loss = 0.5;
  EXPECT_EQ(to_text(report),
            "runs/x/1: stage dense, step 7; split test, 30 samples\n"
            "loss 0.5  top-1 90.00 %\n\n"
            "class     n  correct  accuracy\n"
            "class 0  10       10  100.00 %\n"
            "class 1  10        9   90.00 %\n"
            "class 2  10        8   80.00 %\n\n"
            "confusion matrix: rows are the true classes, columns the predicted ones\n"
            "         class 0  class 1  class 2\n"
            "class 0       10        0        0\n"
            "class 1        0        9        1\n"
            "class 2        2        0        8\n");
}

TEST(EvalFormat, LongNamesAreNumberedInTheMatrix) {
  const std::string text = to_text(report_of(20));
  EXPECT_NE(text.find("\n19 class 19  "), std::string::npos) << text;
}

TEST(EvalFormat, ManyClassesHaveTheMostConfusedPairs) {
  const std::string text = to_text(report_of(21));
  EXPECT_EQ(text.find("confusion matrix"), std::string::npos) << text;
  EXPECT_NE(text.find("most confused: 18 of 18 pairs; --confusion FILE writes the whole matrix\n"
                      "true      predicted  n  of the class\n"
                      "class 9   class 10   9       90.00 %\n"
                      "class 19  class 20   9       90.00 %\n"
                      "class 8   class 9    8       80.00 %\n"),
            std::string::npos)
      << text;
}

TEST(EvalFormat, AClassWithoutSamplesHasNoAccuracy) {
  EvalReport report = report_of(2);
  report.confusion = {10, 0, 0, 0};
  EXPECT_NE(to_text(report).find("\nclass 1   0        0         -\n"), std::string::npos) << to_text(report);
  EXPECT_TRUE(to_value(report).at("classes").as_list().at(1).at("accuracy").is_null());
}

TEST(EvalFormat, NamesCannotBreakColumnsOrTerminals) {
  EvalReport report = report_of(2);
  report.classes = {"a,\"b\"", "c\x1b[2J"};
  EXPECT_EQ(confusion_csv(report), "true,\"a,\"\"b\"\"\",c\x1b[2J\n\"a,\"\"b\"\"\",10,0\nc\x1b[2J,1,9\n");
  EXPECT_EQ(to_text(report).find('\x1b'), std::string::npos);
}

TEST(EvalFormat, JsonHasTheWholeMatrix) {
  EvalReport report = report_of(21);
  report.top5 = 200;
  const Value value = parse_json(to_json(to_value(report)), "eval");
  EXPECT_EQ(value.at("confusion").as_list().size(), 21u);
  EXPECT_EQ(value.at("confusion").as_list().at(3).as_list().at(4), Value(3));
  EXPECT_DOUBLE_EQ(value.at("top5").as_double(), 200.0 / 210.0);
}

}  // namespace
}  // namespace tessera
