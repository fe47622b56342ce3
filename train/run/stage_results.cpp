#include "train/run/stage_results.h"

#include <algorithm>

namespace tessera {

void StageResult::fields(Fields& f) {
  f.add("stage", stage, {.help = "its name"});
  f.add("layers", layers, {.help = "that it constrains"});
}

const StageResult* StageResults::find(const std::string& stage) const {
  const auto found = std::ranges::find(stages, stage, &StageResult::stage);
  return found == stages.end() ? nullptr : &*found;
}

void StageResults::fields(Fields& f) { f.add("stages", stages, {.help = "that left something"}); }

}  // namespace tessera
