#include "train/report/eval_report.h"

#include <algorithm>
#include <cmath>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/saved_run.h"
#include "train/run/saved_model.h"
#include "train/run/position.h"

namespace tessera {
namespace {

constexpr std::size_t kClassesForTop5 = 10;

std::vector<double> softmax(const float* logits, std::size_t classes) {
  const double greatest = *std::max_element(logits, logits + classes);
  std::vector<double> shares(classes);
  double sum = 0;
  for (std::size_t i = 0; i < classes; ++i) sum += shares[i] = std::exp(static_cast<double>(logits[i]) - greatest);
  for (double& share : shares) share /= sum;
  return shares;
}

// How many classes the network finds likelier than the true one, in the order of BatchResult::predicted.
std::int64_t rank_of(std::int64_t label, const float* logits, std::size_t classes) {
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < classes; ++i) {
    const bool behind = logits[i] < logits[label] || (logits[i] == logits[label] && static_cast<std::int64_t>(i) > label);
    rank += static_cast<std::int64_t>(i) != label && !behind;
  }
  return rank;
}

// Takes in batch after batch what the report counts.
class Counter {
 public:
  Counter(EvalReport& report, const Subset& split, const EvalOptions& options)
      : report_(report), split_(split), options_(options), files_(split.dataset->has_files()) {
    report_.classes = split.dataset->classes;
    report_.confusion.assign(classes() * classes(), 0);
    if (classes() >= kClassesForTop5) report_.top5 = 0;
    if (options.predictions) write_header();
  }

  void add(const BatchResult& batch) {
    TESSERA_CHECK(batch.logits.dim(1) == static_cast<std::int64_t>(classes()), ConfigError, "eval: the network tells ",
                  batch.logits.dim(1), " classes apart, the data has ", classes());
    const float* logits = batch.logits.data<float>();
    for (std::size_t i = 0; i < batch.predicted.size(); ++i, logits += classes(), ++at_) {
      const std::int64_t label = batch.labels.data<std::int64_t>()[i];
      ++report_.confusion[static_cast<std::size_t>(label) * classes() + static_cast<std::size_t>(batch.predicted[i])];
      if (report_.top5 && rank_of(label, logits, classes()) < 5) ++*report_.top5;
      if (options_.predictions) write_row(label, batch.predicted[i], logits);
    }
  }

 private:
  std::size_t classes() const { return report_.classes.size(); }
  const std::string& name_of(std::int64_t label) const { return report_.classes[static_cast<std::size_t>(label)]; }

  void write_header() {
    report_.predictions = str("index,", files_ ? "path," : "", "label,predicted,correct,probability");
    if (options_.probabilities) {
      for (const std::string& name : report_.classes) report_.predictions += ',' + csv_field("p:" + name);
    }
    report_.predictions += '\n';
  }

  void write_row(std::int64_t label, std::int64_t predicted, const float* logits) {
    const std::int64_t index = split_.indices[at_];
    const std::vector<double> shares = softmax(logits, classes());
    std::string& text = report_.predictions;
    text += std::to_string(index) + ',';
    if (files_) text += csv_field(split_.dataset->origin(index)) + ',';
    text += csv_field(name_of(label)) + ',' + csv_field(name_of(predicted)) + (label == predicted ? ",1," : ",0,");
    text += formatted("%.6g", shares[static_cast<std::size_t>(predicted)]);
    if (options_.probabilities) {
      for (const double share : shares) text += ',' + formatted("%.6g", share);
    }
    text += '\n';
  }

  EvalReport& report_;
  const Subset& split_;
  const EvalOptions& options_;
  bool files_;
  std::size_t at_ = 0;  // in the split's order
};

}  // namespace

std::int64_t EvalReport::samples_of(std::size_t truth) const {
  std::int64_t samples = 0;
  for (std::size_t predicted = 0; predicted < classes.size(); ++predicted) samples += count(truth, predicted);
  return samples;
}

EvalReport evaluate_run(Vfs& vfs, const RunFolder& run, const EvalOptions& options) {
  const SavedRun saved = open_saved_run(vfs, run, options.at, options.overrides, "eval");
  const Subset& split = split_of(saved.data, options.split, "eval");
  EvalReport report;
  report.run = run.path();
  report.stage = saved.checkpoint.manifest.at("stage_name").as_string();
  report.step = saved.checkpoint.step;
  report.stage_done = read<Position>(saved.checkpoint.manifest.at("position")).stage_done;
  report.averaged = has_averages(saved.checkpoint);
  report.split = options.split;
  Counter counter(report, split, options);
  report.total = evaluate_split(*saved.model, split, saved.data.normalization, saved.config,
                                [&](const BatchResult& batch) { counter.add(batch); });
  return report;
}

}  // namespace tessera
