#include "train/reproduce/cell_result.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compress/timing/summary.h"
#include "core/config/read.h"
#include "layers/weight_count.h"
#include "train/config/yaml.h"
#include "train/data/builtin.h"
#include "train/run/environment.h"
#include "train/run/evaluate.h"
#include "train/run/history.h"
#include "train/run/json_lines.h"
#include "train/run/saved_point.h"
#include "train/run/stage_ends.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

// The residual of the last ADMM update of each stage that had one.
std::map<std::string, double> residuals_of(Vfs& vfs, const RunFolder& run) {
  std::map<std::string, double> last;
  for (const JsonLine& line : read_json_lines(vfs, run.metrics())) {
    const Value* const admm = line.value.find("admm");
    if (admm != nullptr) last[line.value.at("stage").as_string()] = admm->at("relative").as_double();
  }
  return last;
}

// The steps at the median rate of their stage's log lines. Validation and pauses of the machine do not affect this rate.
double train_seconds(Vfs& vfs, const RunFolder& run, const RunHistory& history, std::int64_t batch) {
  const std::vector<JsonLine> lines = read_json_lines(vfs, run.timing());
  double seconds = 0;
  for (const StageRecord& stage : history.stages) {
    std::vector<double> rates;
    for (const JsonLine& line : lines) {
      const std::int64_t step = line.value.at("step").as_int();
      if (step > stage.end_step - stage.steps && step <= stage.end_step)
        rates.push_back(line.value.at("samples_per_second").as_double());
    }
    if (!rates.empty()) seconds += static_cast<double>(stage.steps * batch) / quantile(rates, 0.5);
  }
  return seconds;
}

void add_verdict(CellResult& result, const RunHistory& history) {
  for (const StageRecord& stage : history.stages) {
    for (const PassReport& pass : stage.passes) {
      result.matched_layers = static_cast<std::int64_t>(pass.layers.size());
      result.compressed_layers =
          std::ranges::count_if(pass.layers, [](const LayerReport& layer) { return !layer.stays_dense(); });
    }
  }
}

// `environment` is the run's env.json.
CellResult result_of(const Cell& cell, const Value& environment) {
  CellResult result;
  result.key = cell.key;
  result.name = cell.name();
  result.arm = cell.arm;
  result.seed = cell.seed;
  result.tuned = cell.tuned;
  result.commit = environment.at("commit").as_string();
  result.processor = computing_device(environment);
  result.threads = environment.at("compute_threads").as_int();
  return result;
}

}  // namespace

void StageOutcome::fields(Fields& f) {
  f.add("stage", stage, {.help = "its name"});
  add_tested(f, test, {.help = "on the test split, at its end"});
  f.add("val", val, {.help = "the same metric on val, at its end"});
  f.add("parameters", parameters, {.help = "of the network"});
  f.add("macs", macs, {.help = "per sample"});
  f.add("sparsity", sparsity, {.help = "share of its weights that pruning has made zero"});
  f.add("residual", residual, {.help = "relative primal residual after the last update of an ADMM stage"});
  f.require(test.has_value(), "stage", "has no figure of the test split");
}

void CellResult::fields(Fields& f) {
  f.add("key", key, {.help = "hash of the settings that its figures depend on"});
  f.add("name", name, {.help = "of the cell"});
  f.add("arm", arm, {.help = "its name"});
  f.add("seed", seed, {.help = "of every random number"});
  f.add("tuned", tuned, {.help = "value of the tuned key"});
  f.add("failed", failed, {.help = "why there is no figure"});
  f.add("stages", stages, {.help = "in order"});
  f.add("train_seconds", train_seconds, {.help = "of the training steps, at the median rate of each stage", .clock = true});
  f.add("steps", steps, {.help = "training steps"});
  f.add("file_bytes", file_bytes, {.help = "of the final weights"});
  f.add("matched_layers", matched_layers, {.help = "layers that the last pass matched"});
  f.add("compressed_layers", compressed_layers, {.help = "those of them that are compressed after it"});
  f.add("commit", commit, {.help = "of the program"});
  f.add("processor", processor, {.help = "that trained"});
  f.add("threads", threads, {.help = "for kernels"});
  f.require(failed.has_value() || !stages.empty(), "stages", "is empty, and nothing says why");
}

std::optional<double> CellResult::val() const {
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    if (stage->val) return stage->val;
  }
  return std::nullopt;
}

CellResult measure_cell(Vfs& vfs, const Cell& cell, const RunFolder& run) {
  const ExperimentConfig config = parse_experiment(load_yaml(run.resolved_config())).config;
  set_compute_threads(config.threads.compute);
  const DataSplits data = load_data(config.data, static_cast<std::uint64_t>(config.seed));
  const RunHistory history = read<RunHistory>(load_newest(vfs, run).manifest.at("history"));
  const std::map<std::string, double> residuals = residuals_of(vfs, run);
  CellResult result = result_of(cell, parse_json(vfs.read_file(run.environment()), run.environment()));
  for (const StageEnd& end : load_stage_ends(vfs, run, "reproduce")) {
    move_to(*end.model, resolve_device(config.device));
    const Cost cost = total_cost(*end.model, sample_shape(data));
    StageOutcome outcome{.stage = end.stage, .parameters = cost.parameters, .macs = cost.macs};
    outcome.sparsity = count_weights(*end.model).sparsity();
    const Metric& metric = task_of(config.data).metrics().front();
    outcome.test = Scored{std::string(metric.key), evaluate_split(*end.model, data.test, config).deciding()};
    const auto record = std::ranges::find(history.stages, end.stage, &StageRecord::name);
    if (record != history.stages.end() && record->last) outcome.val = record->last->value;
    if (const auto residual = residuals.find(end.stage); residual != residuals.end()) outcome.residual = residual->second;
    result.stages.push_back(std::move(outcome));
    result.file_bytes = end.file_bytes;
  }
  add_verdict(result, history);
  for (const StageRecord& stage : history.stages) result.steps += stage.steps;
  result.train_seconds = train_seconds(vfs, run, history, config.data.batch);
  return result;
}

CellResult failed_cell(const Cell& cell, const std::string& reason) {
  CellResult result = result_of(cell, describe_environment(cell.experiment.config));
  result.failed = reason;
  return result;
}

}  // namespace tessera
