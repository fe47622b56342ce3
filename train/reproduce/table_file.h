// A table file: arms to compare, the seeds they run with, and what others have published.
//
//   version: 1
//   name: admm_resnet8
//   seeds: [1, 2, 3]
//   tune: {key: optimizer.lr, values: [0.1, 0.05, 0.02], seed: 1}
//   arms:
//     - {name: dense, experiment: admm_resnet8/dense.yaml}
//     - {name: admm, experiment: admm_resnet8/admm.yaml, set: ["stages[1].admm.rho=0.02"]}
//   questions: [{ask: "Is ADMM worth its epochs?", arm: admm, against: dense}]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/timing/timed_at.h"
#include "core/config/fields.h"
#include "train/experiment.h"
#include "train/tasks/metric.h"

namespace tessera {

struct ArmConfig {
  std::string name;
  std::string experiment;  // file; relative to the table file
  std::vector<std::string> set;  // overrides, as on the command line
  std::vector<std::int64_t> seeds;  // of the table's; all where it is empty
  std::string tuned_as;  // the arm whose choice holds for this one too; "" where it chooses for itself
  std::string against;  // the arm of the same input shape that it is compared with; "" where that is the baseline
  void fields(Fields& f);
};

// One setting that every arm may choose for itself, by the validation metric of one seed.
struct TuneConfig {
  std::string key;  // of an experiment file
  std::vector<double> values;
  std::int64_t seed = 1;
  void fields(Fields& f);
};

// Whether `arm` is better than `against`, judged seed by seed.
struct QuestionConfig {
  std::string ask;
  std::string arm;
  std::string against;
  void fields(Fields& f);
};

struct PublishedRow {
  std::string name;
  std::optional<Scored> figure;  // on a test split, in the unit that people read: per cent
  std::string source;
  std::string conditions;
  void fields(Fields& f);
};

struct TableFile {
  std::int64_t version = 1;
  std::string name;
  std::vector<std::int64_t> seeds{1, 2, 3};
  std::string baseline;  // arm that differences and speed-ups of those without `against` refer to; "" is the first
  std::optional<TuneConfig> tune;
  std::vector<ArmConfig> arms;
  std::vector<QuestionConfig> questions;
  std::vector<PublishedRow> published;
  LatencyConfig latency;  // of inference
  std::optional<LatencyConfig> decode;  // of one more position of the data's sequences; not timed without it
  std::optional<LatencyConfig> training;  // of a training step's forward and backward; not timed without it
  Marks marks;  // where its keys stand
  void fields(Fields& f);

  const std::vector<std::int64_t>& seeds_of(const ArmConfig& arm) const;
  std::vector<TimedBatch> timed() const;  // inference, decode, training; each in the file's order
  std::int64_t repeats_of(Phase phase) const;  // of one that is timed
  const std::string& baseline_arm() const { return baseline.empty() ? arms.front().name : baseline; }
  const std::string& compared_with(const ArmConfig& arm) const { return arm.against.empty() ? baseline_arm() : arm.against; }
};

// Strict, as experiment files are. Throws ConfigError with every problem, each as file:line:col: path: message. Experiments are
// not read; their paths are made absolute.
TableFile load_table_file(const std::string& path);

}  // namespace tessera
