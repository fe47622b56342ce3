#include "train/tasks/class_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/data/labelled_images.h"
#include "train/tasks/softmax_shares.h"

namespace tessera {
namespace {

constexpr std::size_t kClassesForTop5 = 10;

// The number of classes that the network ranks before the true one. Ties and NaN count as in ClassAnswers::predicted.
std::int64_t rank_of(std::int64_t label, const float* logits, std::size_t classes) {
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    const bool behind = logits[i] < logits[label] || (logits[i] == logits[label] && static_cast<std::int64_t>(i) > label);
    rank += static_cast<std::int64_t>(i) != label && !behind;
  }
  return rank;
}

}  // namespace

ClassCounts::ClassCounts(std::vector<std::string> names)
    : classes(std::move(names)), confusion(classes.size() * classes.size(), 0) {
  if (classes.size() >= kClassesForTop5) top5 = 0;
}

void ClassCounts::add(const ClassAnswers& answers) {
  const std::size_t known = classes.size();
  TESSERA_CHECK(answers.logits.dim(1) == static_cast<std::int64_t>(known), ConfigError, "eval: the network tells ",
                answers.logits.dim(1), " classes apart, the data has ", known);
  const float* logits = answers.logits.data<float>();
  for (std::size_t i = 0; i < answers.predicted.size(); ++i, logits += known) {
    const std::int64_t label = answers.labels.data<std::int64_t>()[i];
    ++confusion[static_cast<std::size_t>(label) * known + static_cast<std::size_t>(answers.predicted[i])];
    if (top5 && rank_of(label, logits, known) < 5) ++*top5;
  }
}

std::int64_t ClassCounts::samples_of(std::size_t truth) const {
  std::int64_t samples = 0;
  for (std::size_t predicted = 0; predicted < classes.size(); ++predicted) samples += count(truth, predicted);
  return samples;
}

std::int64_t ClassCounts::samples() const { return std::accumulate(confusion.begin(), confusion.end(), std::int64_t{0}); }

double ClassCounts::accuracy() const {
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) correct += count(i, i);
  return samples() > 0 ? static_cast<double>(correct) / static_cast<double>(samples()) : 0.0;
}

ClassDetails::ClassDetails(const Subset& split, const DetailOptions& options)
    : split_(split), options_(options), files_(split.dataset->has_files()), counts_(class_names(split.dataset->description())) {
  if (options.predictions) write_header();
}

void ClassDetails::add(const Tensor& output, const Batch& batch, const BatchLoss&) {
  const ClassAnswers answers(output, batch);
  counts_.add(answers);
  if (!options_.predictions) return;
  const float* logits = answers.logits.data<float>();
  for (std::size_t i = 0; i < answers.predicted.size(); ++i, logits += counts_.classes.size(), ++at_) {
    write_row(answers.labels.data<std::int64_t>()[i], answers.predicted[i], logits);
  }
}

void ClassDetails::write_header() {
  predictions_ = str("index,", files_ ? "path," : "", "label,predicted,correct,probability");
  if (options_.probabilities) {
    for (const std::string& name : counts_.classes) predictions_ += ',' + csv_field("p:" + name);
  }
  predictions_ += '\n';
}

void ClassDetails::write_row(std::int64_t label, std::int64_t predicted, const float* logits) {
  const auto name_of = [&](std::int64_t number) { return counts_.classes[static_cast<std::size_t>(number)]; };
  const std::int64_t index = split_.indices[at_];
  const std::vector<double> shares = softmax_shares({logits, counts_.classes.size()});
  predictions_ += std::to_string(index) + ',';
  if (files_) predictions_ += csv_field(split_.dataset->origin(index)) + ',';
  predictions_ += csv_field(name_of(label)) + ',' + csv_field(name_of(predicted)) + (label == predicted ? ",1," : ",0,");
  predictions_ += formatted("%.6g", shares[static_cast<std::size_t>(predicted)]);
  if (options_.probabilities) {
    for (const double share : shares) predictions_ += ',' + formatted("%.6g", share);
  }
  predictions_ += '\n';
}

Value ClassDetails::keys() const { return write(counts_); }

std::string ClassDetails::csv(std::string_view table) const {
  TESSERA_CHECK(table == "confusion", InternalError, "classification: no table '", table, "'");
  return confusion_csv(counts_);
}

}  // namespace tessera
