// How well a network tells classes apart on one split, class by class. docs/eval.md defines every number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "train/tasks/classification.h"

namespace tessera {

struct ClassCounts {
  std::vector<std::string> classes;
  std::vector<std::int64_t> confusion;  // [true class][predicted class]
  std::optional<std::int64_t> top5;  // samples whose class is among the five likeliest; empty below ten classes

  explicit ClassCounts(std::vector<std::string> names);
  void add(const ClassAnswers& answers);  // throws ConfigError on another number of classes

  std::int64_t count(std::size_t truth, std::size_t predicted) const { return confusion[truth * classes.size() + predicted]; }
  std::int64_t samples_of(std::size_t truth) const;
  std::int64_t samples() const;
  double accuracy() const;  // 0 without samples
  void fields(Fields& f);
};

std::string summary_of(const ClassCounts& counts);  // "top-1 93.28 %  top-5 99.10 %"
std::string to_text(const ClassCounts& counts);
std::string confusion_csv(const ClassCounts& counts);

class ClassDetails final : public TaskDetails {
 public:
  ClassDetails(const Subset& split, const DetailOptions& options);

  void add(const Tensor& output, const Batch& batch, const BatchLoss& loss) override;
  std::vector<double> values() const override { return {counts_.accuracy()}; }
  std::string summary() const override { return summary_of(counts_); }
  std::string text() const override { return to_text(counts_); }
  Value keys() const override;
  std::string predictions() const override { return predictions_; }
  std::string csv(std::string_view table) const override;
  const ClassCounts& counts() const { return counts_; }

 private:
  void write_header();
  void write_row(std::int64_t label, std::int64_t predicted, const float* logits);

  Subset split_;
  DetailOptions options_;
  bool files_;  // samples have paths
  ClassCounts counts_;
  std::string predictions_;
  std::size_t at_ = 0;  // in the split's order
};

}  // namespace tessera
