// The `prune` block of a stage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compress/patterns/config.h"
#include "core/config/duration.h"
#include "core/config/fields.h"

namespace tessera {

// {layers: "layer3.*", target: 0.95}: another target for some of the layers.
struct TargetRule {
  Value layers;  // a selector, or a list of selectors, among the layers that are pruned
  double target = 0;
  void fields(Fields& f);
};

// How sparsity rises. Between two prunings the mask stays.
struct SparsityConfig {
  double target = 0;  // fraction of the weights that is zero at the end; 0 where the file has to say it
  std::vector<TargetRule> targets = {};  // the last that matches a layer holds for it; others take `target`
  std::string schedule = "cubic";
  Duration begin = Duration::percent(0);
  std::optional<Duration> end = {};  // 75 % of the stage
  std::optional<Duration> every = {};  // 100 steps
  void fields(Fields& f);

  double largest_target() const;
};

// N:M whose mask follows the weights until it is frozen.
struct SrSteConfig {
  double lambda = 2e-4;
  Duration freeze = Duration::percent(75);
  void fields(Fields& f);
};

struct PruneConfig {
  std::optional<Value> layers;  // a selector, or a list of selectors; all but the first convolution and the last linear layer
  PatternConfig pattern;
  std::string scope = "layer";
  std::string score = "magnitude";
  std::optional<std::int64_t> score_batches = {};  // 8
  std::optional<SrSteConfig> sr_ste = {};  // of pattern n_m
  SparsityConfig sparsity;
  void fields(Fields& f);

  std::int64_t score_batches_or_default() const { return score_batches.value_or(8); }

 private:
  void require_own(Fields& f, double own) const;
  void require_sr_ste(Fields& f) const;
  void require_tiles(Fields& f) const;
  void add_score(Fields& f);
};

}  // namespace tessera
