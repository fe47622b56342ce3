// What two runs have in common and what not: settings, environment, data, metrics, decisions, layers, weights. The content of
// `tessera diff`; docs/json.md lists its keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "train/report/state_diff.h"
#include "train/run/config_change.h"

namespace tessera {

struct DiffSide {
  std::string path;
  bool is_run = false;  // else an experiment file
  std::string stage;  // of the newest checkpoint; empty without one
  std::int64_t step = -1;

  void fields(Fields& f);
};

// The first line of metrics.jsonl where two runs part.
struct FirstMetric {
  std::int64_t line = 0;  // from 1
  std::string stage;
  std::int64_t step = 0;
  std::vector<KeyChange> values;

  void fields(Fields& f);
};

struct WeightsDiff {
  std::int64_t tensors = 0;  // of both together
  std::vector<TensorDifference> differing;  // by name

  void fields(Fields& f);
};

struct RunDiff {
  DiffSide a, b;
  // Differences of the resolved experiment files. What train would resolve on this machine is resolved: threads.compute.
  std::vector<KeyChange> keys;
  // Everything below is empty unless both sides are runs, and also where one of them lacks the information.
  std::optional<std::vector<KeyChange>> environment;  // env.json but the host's name
  std::optional<std::vector<KeyChange>> data;  // fingerprint of the training data
  std::vector<KeyChange> metrics;  // "<stage>:loss", "<stage>:val_<metric>", "<stage>:best_val_<metric>"
  std::optional<FirstMetric> first_metric;
  std::optional<std::vector<KeyChange>> decisions;  // of a timing only the word that decides
  std::optional<std::vector<KeyChange>> layers;  // "<stage>:<layer>:<column of layers.csv>", speeds left out
  std::optional<WeightsDiff> weights;  // of the newest intact checkpoints; empty unless both have one
  std::vector<std::string> trouble;  // what is damaged or half written, and how far it was compared

  bool both_runs() const { return a.is_run && b.is_run; }
  bool differ() const;  // also when `trouble` left something uncompared
  void fields(Fields& f);
};

// Each side is a run folder or an experiment file. Throws ConfigError when one is neither, or its settings cannot be read; all
// other damage is `trouble`.
RunDiff compare_runs(Vfs& vfs, const std::string& a, const std::string& b);

std::string to_text(const RunDiff& diff);
Value to_value(const RunDiff& diff);

}  // namespace tessera
