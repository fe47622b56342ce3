#include "train/tasks/classification.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/ops/cross_entropy.h"
#include "core/support/error.h"
#include "train/config/utf8.h"
#include "train/data/image_names.h"
#include "train/data/labelled_images.h"
#include "train/data/new_images.h"
#include "train/tasks/class_counts.h"

namespace tessera {
namespace {

std::int64_t predicted_class(const float* row, std::int64_t classes, std::int64_t label) {
  std::int64_t greatest = -1;
  for (std::int64_t i = 0; i < classes; ++i) {
    const bool nan = std::isnan(row[i]);
    if (nan && i != label) return i;
    if (!nan && (greatest < 0 || row[i] > row[greatest])) greatest = i;
  }
  return std::max<std::int64_t>(greatest, 0);  // the only class if there is one, even with a NaN score
}

class Accuracy final : public SummedScore {
 public:
  void add(const Tensor& output, const Batch& batch, const BatchLoss&) override {
    const ClassAnswers answers(output, batch);
    correct_ += answers.correct();
    samples_ += batch.samples();
  }
  std::vector<double> values() const override {
    return {samples_ > 0 ? static_cast<double>(correct_) / static_cast<double>(samples_) : 0.0};
  }
  std::vector<double> sums() const override { return {static_cast<double>(samples_), static_cast<double>(correct_)}; }
  void add_sums(std::span<const double> sums) override {
    samples_ += static_cast<std::int64_t>(sums[0]);
    correct_ += static_cast<std::int64_t>(sums[1]);
  }

 private:
  std::int64_t samples_ = 0;
  std::int64_t correct_ = 0;
};

class ClassPrediction final : public Prediction {
 public:
  ClassPrediction(std::vector<std::string> names, const Value& description, const Shape& input)
      : names_(std::move(names)), images_(description, input) {}

  std::vector<FoundFile> files(const std::string& path) const override {
    return is_folder(path) ? images_below(path) : std::vector{FoundFile{path}};
  }
  std::unique_ptr<NewSamples> open(const std::string& file) const override { return images_.open(file); }
  std::unique_ptr<NewSamples> open_text(const std::string&, const std::string& name) const override {
    throw ConfigError(str("predict: ", name, " is a text; the network takes images"));
  }
  std::int64_t answers() const override { return std::ssize(names_); }
  std::string name_of(std::int64_t number) const override { return names_[static_cast<std::size_t>(number)]; }
  std::string shown(const std::string& name) const override { return printable(name); }
  Tensor scores(const Tensor& output) const override { return output.to(DType::f32).to(Device::cpu()).contiguous(); }

 private:
  std::vector<std::string> names_;
  NewImages images_;
};

}  // namespace

ClassAnswers::ClassAnswers(const Tensor& output, const Batch& batch)
    : logits(output.to(Device::cpu()).contiguous()), labels(batch.at("label").to(Device::cpu()).contiguous()) {
  const std::int64_t classes = logits.dim(1);
  const float* row = logits.data<float>();
  for (std::int64_t i = 0; i < logits.dim(0); ++i, row += classes) {
    predicted.push_back(predicted_class(row, classes, labels.data<std::int64_t>()[i]));
  }
}

std::int64_t ClassAnswers::correct() const {
  const std::int64_t* truth = labels.data<std::int64_t>();
  std::int64_t correct = 0;
  for (const std::int64_t said : predicted) correct += said == *truth++;
  return correct;
}

std::span<const Metric> Classification::metrics() const {
  static constexpr std::array<Metric, 1> metrics{
      Metric{.key = "accuracy", .column = "top1", .heading = "top-1", .unit = Metric::Unit::fraction, .more_is_better = true}};
  return metrics;
}

std::span<const Task::Table> Classification::tables() const {
  static constexpr std::array<Table, 1> tables{Table{"confusion", "CSV to write: the whole confusion matrix"}};
  return tables;
}

Var Classification::loss(const Var& output, const Batch& batch, const LossConfig& config) const {
  return cross_entropy(output, batch.at("label"), {.label_smoothing = config.label_smoothing});
}

void Classification::check_output(const Shape& output, const Dataset& data) const {
  const auto classes = static_cast<std::int64_t>(class_names(data.description()).size());
  TESSERA_CHECK(output.rank() == 2 && output[1] == classes, ConfigError, "the network gives ", output, " for one image; ",
                data.name(), " has ", classes, " classes, so it must be [1, ", classes, "]");
}

std::unique_ptr<SummedScore> Classification::score() const { return std::make_unique<Accuracy>(); }

std::unique_ptr<TaskDetails> Classification::details(const Subset& split, const DetailOptions& options) const {
  return std::make_unique<ClassDetails>(split, options);
}

std::unique_ptr<Prediction> Classification::prediction(const Value& description, const Shape& input, const Shape& output) const {
  std::vector<std::string> names = class_names(description);
  TESSERA_CHECK(!names.empty() && output == (Shape{1, std::ssize(names)}), ConfigError, "the network gives ", output,
                " for one image, but was saved with ", names.size(), " classes");
  return std::make_unique<ClassPrediction>(std::move(names), description, input);
}

}  // namespace tessera
