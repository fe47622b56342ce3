#include "train/report/eval_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/experiment.h"
#include "train/run/environment.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 6> kAllowed{"data.root",      "data.batch", "threads.compute",
                                                   "threads.loader", "device",     "precision"};
constexpr std::size_t kClassesForTop5 = 10;

DataSplits data_of(const ExperimentConfig& config, const Checkpoint& checkpoint) {
  try {
    DataSplits data = load_data(config.data, static_cast<std::uint64_t>(config.seed));
    const std::string content = fingerprint(*data.train.dataset);
    const std::string& before = checkpoint.manifest.at("data").as_string();
    TESSERA_CHECK(before == content, ConfigError,
                  "eval: the training data, which gives mean, std and classes, is not the run's: "
                  "fingerprint ",
                  content, ", ", checkpoint.folder.string(), " has ", before);
    return data;
  } catch (const IoError& error) {  // files that are not there are bad input
    throw ConfigError(str("data: ", error.what()));
  }
}

const Subset& split_of(const DataSplits& data, const std::string& name) {
  TESSERA_CHECK(name == "test" || name == "val" || name == "train", ConfigError, "eval: no split '", name,
                "'; there are test, val, train");
  const Subset& split = name == "test" ? data.test : name == "val" ? data.val : data.train;
  TESSERA_CHECK(split.size() > 0, ConfigError, "eval: the ", name, " split is empty", name == "val" ? "; data.val is 0" : "");
  return split;
}

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
  const ExperimentConfig config = settings_of(run, options.overrides, kAllowed, "eval");
  const Device device = resolve_device(config.device);
  const Checkpoint checkpoint = load_at(vfs, run, options.at, "eval");
  const DataSplits data = data_of(config, checkpoint);
  const Subset& split = split_of(data, options.split);
  EvalReport report;
  report.run = run.path();
  report.stage = checkpoint.manifest.at("stage_name").as_string();
  report.step = checkpoint.step;
  report.stage_done = read<Position>(checkpoint.manifest.at("position")).stage_done;
  report.averaged = has_averages(checkpoint);
  report.split = options.split;
  set_compute_threads(config.threads.compute);
  const std::unique_ptr<Module> model = evaluation_model(checkpoint);
  move_to(*model, device);
  Counter counter(report, split, options);
  report.total = evaluate_split(*model, split, data.normalization, config, [&](const BatchResult& batch) { counter.add(batch); });
  return report;
}

}  // namespace tessera
