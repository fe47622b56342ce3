// The whole list of tasks.
#pragma once

#include <span>
#include <string_view>

#include "train/data/builtin.h"
#include "train/tasks/task.h"

namespace tessera {

std::span<const Task* const> builtin_tasks();

// Throws ConfigError on a name that no task has.
const Task& builtin_task(std::string_view name);

// The task of the data set that the block names.
const Task& task_of(const DataConfig& data);

// The deciding metric of the first task, for tables that have no row yet.
const Metric& usual_metric();

// The metric of this key that decides in some task. Throws InternalError where there is none.
const Metric& metric_of(std::string_view key);

}  // namespace tessera
