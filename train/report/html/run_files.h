// A run as the files of its folder tell it, finished or under way: nothing is evaluated and no clock is read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "train/report/html/curves.h"
#include "train/report/html/layer_states.h"
#include "train/run/history.h"
#include "train/run/run_folder.h"
#include "train/run/status.h"
#include "train/tasks/metric.h"

namespace tessera {

// The numbers of one key of metrics.jsonl or timing.jsonl; "admm.rho" is `rho` of the lines that hold `admm`.
struct RunSeries {
  std::string key;
  std::vector<CurvePoint> points;
};

// What a run has logged.
struct RunNumbers {
  std::vector<RunSeries> series;  // in the order in which their keys appear
  std::vector<StageSpan> stages;  // that have logged something
};
// Throws IoError naming file and line on a file that is missing or damaged. A last line that is being written is left out.
RunNumbers read_run_numbers(Vfs& vfs, const RunFolder& folder);

// Empty before the first one is written. Throws IoError naming the file on a damaged one.
std::optional<RunStatus> read_run_status(Vfs& vfs, const RunFolder& folder);

// The network in a checkpoint.
struct SavedNetwork {
  std::string stage;
  bool stage_done = false;
  std::int64_t parameters = 0;
  std::int64_t macs = 0;  // per sample
  std::int64_t file_bytes = 0;  // of its weights
  std::vector<LayerState> layers{};  // masks count only at a stage's end; none where its weights are damaged
};

// Networks of stages that are done, by the folders of their checkpoints, which do not change any more.
using SavedNetworks = std::map<std::string, SavedNetwork>;

// A line of layers.csv; docs/report.md says what its columns mean.
struct LayerLine {
  std::string stage, path, format, ranks, phase, decision, reason;
  std::int64_t parameters_before = 0, parameters_after = 0;
  std::int64_t macs_before = 0, macs_after = 0;
  std::optional<double> dense_ms, compressed_ms, speedup, speedup_low, speedup_high;  // empty where it was not timed
};
std::vector<LayerLine> parse_layers_csv(const std::string& text, const std::string& origin);

struct ReportRun {
  std::string path;
  std::string name;  // the experiment's
  std::string label;  // the name, or "name/1", or the path: what tells the runs of a page apart
  std::int64_t seed = 0;
  const Metric* metric = nullptr;  // the first of the run's task
  std::span<const Metric> metrics{};  // all of them
  std::string state{};  // as `tessera status` says it; "begun" before the first status
  bool open = false;  // its program runs
  std::vector<RunSeries> series{};  // as in RunNumbers
  std::vector<StageSpan> stages{};
  RunHistory history{};  // of the newest checkpoint
  std::vector<SavedNetwork> networks{};  // at the ends of stages, and last the newest; none before the first checkpoint
  std::vector<LayerLine> layers{};
  std::string settings{};  // config.resolved.yaml
  std::vector<Value::Entry> environment{};  // env.json
  std::vector<std::string> notes{};  // of train.log: what it was forked from, and with which changes it was resumed

  const RunSeries* find(const std::string& key) const;
  // "val_" and the first metric's key; null before the first evaluation.
  const RunSeries* judged() const { return find("val_" + std::string(metric->key)); }
  const Metric& pictured() const;  // the one that pictures of quality against time show
};

// Throws ConfigError on a folder that is no run's, IoError naming file and line on one that is missing or damaged.
// `known`: networks that an earlier call has read, to which this one adds; null where a run is read once.
ReportRun read_report_run(Vfs& vfs, const std::string& path, SavedNetworks* known = nullptr);

}  // namespace tessera
