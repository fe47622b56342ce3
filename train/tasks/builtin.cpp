#include "train/tasks/builtin.h"

#include <algorithm>
#include <array>

#include "core/support/error.h"
#include "train/tasks/classification.h"
#include "train/tasks/masked_token.h"
#include "train/tasks/next_token.h"

namespace tessera {

std::span<const Task* const> builtin_tasks() {
  static const Classification classification;
  static const MaskedToken masked_token;
  static const NextToken next_token;
  static constexpr std::array<const Task*, 3> tasks{&classification, &masked_token, &next_token};
  return tasks;
}

const Task& builtin_task(std::string_view name) {
  const auto found = std::ranges::find(builtin_tasks(), name, &Task::name);
  TESSERA_CHECK(found != builtin_tasks().end(), ConfigError, "no task '", name, "'");
  return **found;
}

const Task& task_of(const DataConfig& data) {
  const std::string_view name = task_name(data);
  const auto found = std::ranges::find(builtin_tasks(), name, &Task::name);
  TESSERA_CHECK(found != builtin_tasks().end(), InternalError, "data set ", data.name(), ": no task '", name, "'");
  return **found;
}

const Metric& usual_metric() { return builtin_tasks().front()->metrics().front(); }

const Metric& metric_of(std::string_view key) {
  for (const Task* task : builtin_tasks()) {
    if (task->metrics().front().key == key) return task->metrics().front();
  }
  throw InternalError(str("no task is decided by a metric '", key, "'"));
}

}  // namespace tessera
