// How much of its metric on val a trained network loses when one layer alone is pruned: the content of `tessera sensitivity`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "train/report/saved_run.h"
#include "train/tasks/builtin.h"

namespace tessera {

struct SensitivityOptions {
  std::string at;  // as open_saved_run() takes it
  std::vector<std::string> overrides;
  std::vector<double> sparsities{0.5, 0.75, 0.9};  // ascending, each above 0 and below 1
  std::string pattern = "unstructured";  // with its default parameters
  double drop = 1;  // that a suggested target may cost, in the unit that people read: points of a metric in per cent
  std::function<void(const std::string& layer)> before_layer = {};
};

struct WeightSensitivity {
  std::string path;
  std::string layer;  // a factored one has several weights
  std::int64_t weights = 0;
  std::int64_t kept = 0;  // of them, before
  const Metric* metric = &usual_metric();  // the run's, as is the report's
  std::vector<double> values;  // at each sparsity
  double suggested = 0;  // the greatest sparsity up to which every value is within the drop; 0: none
  void fields(Fields& f);
};

struct SensitivityReport {
  std::string run;
  std::string stage;
  std::int64_t step = 0;
  std::string pattern;
  std::int64_t samples = 0;  // of the val split
  const Metric* metric = &usual_metric();  // the first of the run's task
  double value = 0;  // of the network as it is
  std::vector<double> sparsities;
  std::vector<WeightSensitivity> layers;  // weights that the pattern can hold, in the network's order
  std::vector<std::string> left_out;  // with the reason: other weights, and layers that are sparse already
  void fields(Fields& f);
};

// Each weight of two dimensions or more is pruned by magnitude on its own, with what follows it (PrunedWeight::followers), and
// the network is evaluated on `val` without training. What is pruned already stays pruned. Throws as open_saved_run() does,
// ConfigError on invalid options.
SensitivityReport sensitivity_of(Vfs& vfs, const RunFolder& run, const SensitivityOptions& options);

std::string to_text(const SensitivityReport& report);

}  // namespace tessera
