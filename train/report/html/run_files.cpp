#include "train/report/html/run_files.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/config/read.h"
#include "core/io/safetensors.h"
#include "core/nn/module.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/text.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "train/run/json_lines.h"
#include "train/run/model_state.h"
#include "train/run/run_settings.h"
#include "train/run/saved_point.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

// JSON has no NaN or infinities, so they are stored as strings (core/config/value.h).
std::optional<double> number_in(const Value& value) {
  if (value.is_number()) return value.as_double();
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.as_string();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "-inf") return text == "inf" ? HUGE_VAL : -HUGE_VAL;
  return std::nullopt;
}

void add_point(RunNumbers& numbers, const std::string& key, std::int64_t step, const Value& value) {
  const std::optional<double> number = number_in(value);
  if (!number) return;
  auto found = std::ranges::find(numbers.series, key, &RunSeries::key);
  if (found == numbers.series.end()) found = numbers.series.insert(numbers.series.end(), RunSeries{key, {}});
  found->points.push_back({step, *number});
}

void add_line(RunNumbers& numbers, const Value& line) {
  const std::int64_t step = line.at("step").as_int();
  for (const Value::Entry& entry : line.as_map()) {
    if (entry.key == "step" || entry.key == "epoch" || entry.key == "stage") continue;
    if (!entry.value.is_map()) {
      add_point(numbers, entry.key, step, entry.value);
      continue;
    }
    for (const Value::Entry& inner : entry.value.as_map()) {
      if (inner.key != "step") add_point(numbers, str(entry.key, '.', inner.key), step, inner.value);
    }
  }
}

// Stages that only rewrite the network log nothing, so their steps come from the history. A stage is listed once it is done.
void add_stages_of_history(ReportRun& run) {
  std::vector<StageSpan> stages;
  for (const StageRecord& record : run.history.stages) {
    if (record.done) stages.push_back({record.name, record.end_step});
  }
  for (StageSpan& span : run.stages) {
    if (std::ranges::find(stages, span.name, &StageSpan::name) == stages.end()) stages.push_back(std::move(span));
  }
  run.stages = std::move(stages);
}

// Masks are in the file of the weights, which the page needs for nothing else. If it is damaged, the page shows no masks.
bool load_masks(Vfs& vfs, const SavedPoint& point, const FileRecord& weights, Module& model) {
  try {
    const std::string origin = (point.folder / weights.name).string();
    load_model_state(model, {.tensors = decode_safetensors(read_verified(vfs, point.folder, weights), origin).tensors});
    return true;
  } catch (const IoError& error) {
    log_warning(str("ranks and sparsity of stage ", point.stage, " are left out: ", error.what()));
    return false;
  }
}

SavedNetwork network_of(Vfs& vfs, const SavedPoint& point, const RunHistory& history) {
  const Value& manifest = point.manifest.extra;
  const std::unique_ptr<Module> model = rebuild(manifest.at("model"), builtin_layers());
  const Cost cost = total_cost(*model, input_of(manifest));
  SavedNetwork network{.stage = point.stage, .stage_done = point.position.stage_done};
  network.parameters = cost.parameters;
  network.macs = cost.macs;
  const std::vector<FileRecord>& files = point.manifest.files;
  const auto weights = std::ranges::find(files, "model.safetensors", &FileRecord::name);
  if (weights != files.end()) {
    network.file_bytes = weights->bytes;
    const auto record = std::ranges::find(history.stages, point.stage, &StageRecord::name);
    const bool pruned = record != history.stages.end() && record->sparsity;
    if (pruned && network.stage_done && !load_masks(vfs, point, *weights, *model)) return network;
  }
  network.layers = layer_states(*model);
  return network;
}

void read_checkpoints(Vfs& vfs, const RunFolder& folder, ReportRun& run, SavedNetworks& known) {
  const std::vector<SavedPoint> points = saved_points(vfs, folder);
  if (points.empty()) return;
  try {
    run.history = read<RunHistory>(points.back().manifest.extra.at("history"));
  } catch (const ConfigError& error) {
    throw IoError(str(points.back().folder.string(), ": ", error.what()));
  }
  for (const SavedPoint& point : points) {
    const bool newest = &point == &points.back();
    if (!point.position.stage_done && !newest) continue;
    try {
      const std::string place = point.folder.string();
      const auto found = known.find(place);
      SavedNetwork network = found != known.end() ? found->second : network_of(vfs, point, run.history);
      if (point.position.stage_done) known.emplace(place, network);
      // A later revision of a stage's checkpoint replaces the earlier one.
      const bool again = !run.networks.empty() && run.networks.back().stage == network.stage;
      if (again) run.networks.pop_back();
      run.networks.push_back(std::move(network));
    } catch (const ConfigError& error) {
      throw IoError(str(point.folder.string(), ": ", error.what()));
    }
  }
}

void read_layers(Vfs& vfs, const RunFolder& folder, ReportRun& run) {
  if (vfs.exists(folder.layers())) {
    run.layers = parse_layers_csv(vfs.read_file(folder.layers()), folder.layers());
  } else {
    TESSERA_CHECK(!has_layers(run.history), IoError, folder.layers(),
                  ": is missing; the run has factorised, and `tessera resume` writes it again");
  }
}

void read_status(Vfs& vfs, const RunFolder& folder, ReportRun& run) {
  const std::optional<RunStatus> status = read_run_status(vfs, folder);
  run.state = status ? state_now(*status) : "begun";
  run.open = run.state == "training";
}

void read_notes(Vfs& vfs, const RunFolder& folder, ReportRun& run) {
  if (!vfs.exists(folder.log())) return;
  for (const std::string& line : split(vfs.read_file(folder.log()), '\n')) {
    const bool told = line.starts_with("forked from ") || line.starts_with("resumed") || line.starts_with("goes on without ");
    if (told) run.notes.push_back(line);
  }
}

}  // namespace

const RunSeries* ReportRun::find(const std::string& key) const {
  const auto found = std::ranges::find(series, key, &RunSeries::key);
  return found == series.end() ? nullptr : &*found;
}

const Metric& ReportRun::pictured() const {
  const auto found = std::ranges::find_if(metrics, &Metric::pictured);
  return found == metrics.end() ? *metric : *found;
}

std::optional<RunStatus> read_run_status(Vfs& vfs, const RunFolder& folder) {
  if (!vfs.exists(folder.status())) return std::nullopt;
  try {
    return load_status(vfs, folder.status());
  } catch (const ConfigError& error) {
    throw IoError(str(folder.status(), ": ", error.what()));
  }
}

RunNumbers read_run_numbers(Vfs& vfs, const RunFolder& folder) {
  RunNumbers numbers;
  for (const std::string& path : {folder.metrics(), folder.timing()}) {
    for_each_json_line(vfs, path, [&](const JsonLine& line) {
      try {
        add_line(numbers, line.value);
        if (path == folder.timing()) return;
        const std::string& stage = line.value.at("stage").as_string();
        if (numbers.stages.empty() || numbers.stages.back().name != stage) numbers.stages.push_back({stage, 0});
        numbers.stages.back().end = line.value.at("step").as_int();
      } catch (const ConfigError& error) {
        throw IoError(str(line.where, ": ", error.what()));
      }
    });
  }
  return numbers;
}

ReportRun read_report_run(Vfs& vfs, const std::string& path, SavedNetworks* known) {
  const RunFolder folder = RunFolder::open(vfs, path);
  const ExperimentConfig config = settings_of(folder, {}, {}, "report");
  const std::span<const Metric> metrics = task_of(config.data).metrics();
  ReportRun run{.path = folder.path(), .name = config.name, .label = config.name, .seed = config.seed};
  run.metric = &metrics.front();
  run.metrics = metrics;
  run.settings = vfs.read_file(folder.resolved_config());
  const Value environment = parse_json(vfs.read_file(folder.environment()), folder.environment());
  TESSERA_CHECK(environment.is_map(), IoError, folder.environment(), ": is ", environment.kind_name(), ", not a JSON object");
  run.environment = environment.as_map();
  RunNumbers numbers = read_run_numbers(vfs, folder);
  run.series = std::move(numbers.series);
  run.stages = std::move(numbers.stages);
  SavedNetworks own;
  read_checkpoints(vfs, folder, run, known != nullptr ? *known : own);
  add_stages_of_history(run);
  read_layers(vfs, folder, run);
  read_status(vfs, folder, run);
  read_notes(vfs, folder, run);
  return run;
}

}  // namespace tessera
