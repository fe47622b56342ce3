#include "train/tasks/class_counts.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::vector<std::string> names(std::size_t classes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < classes; ++i) names.push_back(str("class ", i));
  return names;
}

// Counts in which i % 10 of the 10 samples of class i are taken for class i + 1.
ClassCounts counts_of(std::size_t classes) {
  ClassCounts counts(names(classes));
  counts.top5.reset();
  for (std::size_t i = 0; i < classes; ++i) {
    const auto wrong = static_cast<std::int64_t>(i % 10);
    counts.confusion[i * classes + i] += 10 - wrong;
    counts.confusion[i * classes + (i + 1) % classes] += wrong;
  }
  return counts;
}

TEST(ClassCounts, FewClassesHaveAMatrixHeadedByTheirNames) {
  const ClassCounts counts = counts_of(3);
  EXPECT_EQ(summary_of(counts), "top-1 90.00 %");
  EXPECT_EQ(to_text(counts),
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

// The answer to a sample is the class with the greatest score. Of equal scores the first class counts.
TEST(ClassCounts, CountsAnswers) {
  ClassCounts counts(names(3));
  const Tensor scores = Tensor::from(std::vector<float>{0, 1, 1, 5, 0, 0, 0, 0, 2}, {3, 3});
  const Batch batch{{"x", Tensor::zeros({3, 1})}, {"label", Tensor::from(std::vector<std::int64_t>{2, 0, 2}, {3})}};
  counts.add(ClassAnswers(scores, batch));
  EXPECT_EQ(counts.confusion, (std::vector<std::int64_t>{1, 0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(counts.samples(), 3);
  EXPECT_DOUBLE_EQ(counts.accuracy(), 2.0 / 3.0);
  EXPECT_THROW(ClassCounts(names(4)).add(ClassAnswers(scores, batch)), ConfigError);
}

TEST(ClassCounts, LongNamesAreNumberedInTheMatrix) {
  const std::string text = to_text(counts_of(20));
  EXPECT_NE(text.find("\n19 class 19  "), std::string::npos) << text;
}

TEST(ClassCounts, ManyClassesHaveTheMostConfusedPairs) {
  const std::string text = to_text(counts_of(21));
  EXPECT_EQ(text.find("confusion matrix"), std::string::npos) << text;
  EXPECT_NE(text.find("most confused: 18 of 18 pairs; --confusion FILE writes the whole matrix\n"
                      "true      predicted  n  of the class\n"
                      "class 9   class 10   9       90.00 %\n"
                      "class 19  class 20   9       90.00 %\n"
                      "class 8   class 9    8       80.00 %\n"),
            std::string::npos)
      << text;
}

TEST(ClassCounts, AClassWithoutSamplesHasNoAccuracy) {
  ClassCounts counts = counts_of(2);
  counts.confusion = {10, 0, 0, 0};
  EXPECT_NE(to_text(counts).find("\nclass 1   0        0         -\n"), std::string::npos) << to_text(counts);
  EXPECT_TRUE(write(counts).at("classes").as_list().at(1).at("accuracy").is_null());
}

TEST(ClassCounts, NamesCannotBreakColumnsOrTerminals) {
  ClassCounts counts = counts_of(2);
  counts.classes = {"a,\"b\"", "c\x1b[2J"};
  EXPECT_EQ(confusion_csv(counts), "true,\"a,\"\"b\"\"\",c\x1b[2J\n\"a,\"\"b\"\"\",10,0\nc\x1b[2J,1,9\n");
  EXPECT_EQ(to_text(counts).find('\x1b'), std::string::npos);
}

TEST(ClassCounts, JsonHasTheWholeMatrix) {
  ClassCounts counts = counts_of(21);
  counts.top5 = 200;
  const Value value = parse_json(to_json(write(counts)), "eval");
  EXPECT_EQ(value.at("confusion").as_list().size(), 21u);
  EXPECT_EQ(value.at("confusion").as_list().at(3).as_list().at(4), Value(3));
  EXPECT_DOUBLE_EQ(value.at("top5").as_double(), 200.0 / 210.0);
}

}  // namespace
}  // namespace tessera
