// The line of metrics.jsonl that a pruning leaves: {prune: {step, asked, sparsity}}.
#pragma once

#include <cstdint>
#include <utility>

#include "core/config/value.h"

namespace tessera {

inline Value pruning_row(std::int64_t step, double asked, double sparsity) {
  Value pruning = Value::map();
  pruning.set("step", step);
  pruning.set("asked", asked);
  pruning.set("sparsity", sparsity);
  Value row = Value::map();
  row.set("prune", std::move(pruning));
  return row;
}

}  // namespace tessera
