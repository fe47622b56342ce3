#include "train/report/table.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/support/error.h"
#include "layers/decoding.h"
#include "layers/fold.h"
#include "train/config/yaml.h"
#include "train/data/builtin.h"
#include "train/experiment.h"
#include "train/report/bench_device.h"
#include "train/run/compute_dtype.h"
#include "train/run/environment.h"
#include "train/run/evaluate.h"
#include "train/run/run_folder.h"
#include "train/run/stage_ends.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

struct LoadedRun {
  RunFolder folder;
  ExperimentConfig config;
  DataSplits data;
  Shape input;
  Device device;
  std::vector<StageEnd> stages;
  Value settings;  // what runs of one experiment have in common
};

// Runs that differ only in the seed and in keys that common_settings() drops.
struct Group {
  Value settings;
  std::string name;
  std::string path;  // of the first run
  std::vector<TableRow> rows;
};

Value common_settings(Value resolved) {
  for (const char* key : {"seed", "checkpoint", "report", "log_every"}) resolved.erase(key);
  if (Value* threads = resolved.find("threads")) threads->erase("loader");
  return resolved;
}

LoadedRun load_run(Vfs& vfs, const std::string& path, const std::string& asked_device) {
  RunFolder folder = RunFolder::open(vfs, path);
  Experiment experiment = parse_experiment(load_yaml(folder.resolved_config()));
  if (!asked_device.empty()) experiment.config.device = asked_device;
  const Device device = resolve_device(experiment.config.device);
  DataSplits data = load_data(experiment.config.data, static_cast<std::uint64_t>(experiment.config.seed));
  const Shape input = sample_shape(data);
  std::vector<StageEnd> stages = load_stage_ends(vfs, folder, "table");
  TESSERA_CHECK(!stages.empty(), ConfigError, folder.path(), ": no stage has ended yet; nothing to tabulate");
  for (const StageEnd& stage : stages) move_to(*stage.model, device);
  return {std::move(folder),
          std::move(experiment.config),
          std::move(data),
          input,
          device,
          std::move(stages),
          common_settings(std::move(experiment.resolved))};
}

void add_latency(const LoadedRun& run, std::span<TableRow> rows) {
  std::vector<std::unique_ptr<Module>> copies;
  std::vector<Module*> networks;
  for (const StageEnd& stage : run.stages) {
    networks.push_back(copies.emplace_back(for_inference(*stage.model)).get());
  }
  bool replayed = true;
  const auto time = [&](Phase phase, const LatencyConfig& config) {
    const WorkOptions work{.phase = phase, .compute = compute_dtype_of(run.config), .device = device_of(*networks.front())};
    for (const std::int64_t batch : config.batch) {
      Shape input = run.input;
      input.set(0, batch);
      const PairedTiming timing = time_networks(networks, input, config.repeats, work);
      replayed = replayed && timing.replayed;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].latency.push_back({batch, timing.networks[i], timing.speedup[i], timing.of_medians(i), timing.alone[i], phase});
      }
    }
  };
  time(Phase::inference, run.config.report.latency);
  if (run.config.report.decode) {
    for (Module* const network : networks) require_decoding(*network, run.folder.path());
    time(Phase::decode, *run.config.report.decode);
  }
  if (run.device.is_cpu()) return;
  const char* const how = replayed ? ", recorded and replayed" : ", as queued by the host";
  for (TableRow& row : rows) row.processor += how;
}

void set_machine(TableRow& row, const LoadedRun& run) {
  if (run.device.is_cuda()) {
    row.processor = gpu_text(device_info(run.device));
    return;
  }
  row.processor = describe_environment(run.config).at("processor").as_string();
  row.threads = resolve_compute_threads(run.config.threads.compute);
}

std::vector<TableRow> make_rows(const LoadedRun& run) {
  std::vector<TableRow> rows;
  for (const StageEnd& stage : run.stages) {
    const Cost cost = total_cost(*stage.model, run.input);
    TableRow row;
    row.experiment = run.config.name;
    row.stage = stage.stage;
    row.metric = &task_of(run.config.data).metrics().front();
    row.parameters = cost.parameters;
    row.macs = cost.macs;
    row.file_bytes = stage.file_bytes;
    set_machine(row, run);
    rows.push_back(std::move(row));
  }
  add_latency(run, rows);
  return rows;
}

Group& find_group(std::vector<Group>& groups, const LoadedRun& run) {
  const auto found = std::ranges::find(groups, run.settings, &Group::settings);
  if (found != groups.end()) return *found;
  return groups.emplace_back(Group{run.settings, run.config.name, run.folder.path(), make_rows(run)});
}

void add_cost(TableRow& row, const Cost& cost) {
  if (!row.range && cost.parameters == row.parameters && cost.macs == row.macs) return;
  CostRange range = row.cost_range();
  range.least_parameters = std::min(range.least_parameters, cost.parameters);
  range.greatest_parameters = std::max(range.greatest_parameters, cost.parameters);
  range.least_macs = std::min(range.least_macs, cost.macs);
  range.greatest_macs = std::max(range.greatest_macs, cost.macs);
  row.range = range;
}

void add_run(Group& group, const LoadedRun& run) {
  const bool same = std::ranges::equal(run.stages, group.rows, {}, &StageEnd::stage, &TableRow::stage);
  TESSERA_CHECK(same, ConfigError, run.folder.path(), ": ", run.stages.size(), " finished stages, the last '",
                run.stages.back().stage, "'; ", group.path, ", of the same settings, has ", group.rows.size(), ", the last '",
                group.rows.back().stage, "'; runs of one experiment must have come equally far");
  for (std::size_t i = 0; i < group.rows.size(); ++i) {
    add_cost(group.rows[i], total_cost(*run.stages[i].model, run.input));
    group.rows[i].values.push_back(evaluate_split(*run.stages[i].model, run.data.test, run.config).deciding());
  }
}

// Reads the runs' settings alone, because evaluating a run may take minutes.
void check_one_task(Vfs& vfs, std::span<const std::string> runs) {
  std::optional<std::string_view> first;
  for (const std::string& path : runs) {
    const Experiment experiment = parse_experiment(load_yaml(RunFolder::open(vfs, path).resolved_config()));
    const std::string_view key = task_of(experiment.config.data).metrics().front().key;
    TESSERA_CHECK(key == first.value_or(key), ConfigError, "table: ", path, " is judged by ", key, ", ", runs.front(), " by ",
                  first.value_or(""), "; a table has runs of one task");
    first = key;
  }
}

void tell_unfinished(const LoadedRun& run, std::ostream& out) {
  const std::string& last = run.stages.back().stage;
  if (last == run.config.stages.back().name) return;
  out << run.folder.path() << ": has not ended; the table has its stages up to '" << last << "'" << std::endl;
}

}  // namespace

Table make_table(Vfs& vfs, std::span<const std::string> runs, std::ostream* out, const std::string& device) {
  check_one_task(vfs, runs);
  const DecisionScope fastest({.measure = true});  // every network at its best; the runs' own choices are not touched
  std::vector<Group> groups;
  for (const std::string& path : runs) {
    const LoadedRun run = load_run(vfs, path, device);
    set_compute_threads(run.config.threads.compute);
    const Tf32Products products(takes_tf32(run.config));
    if (out != nullptr) {
      tell_unfinished(run, *out);
      *out << "evaluating " << run.folder.path() << std::endl;
    }
    add_run(find_group(groups, run), run);
  }
  Table table;
  for (Group& group : groups) {
    const bool alone = std::ranges::count(groups, group.name, &Group::name) == 1;
    for (TableRow& row : group.rows) {
      if (!alone) row.experiment += str(" (", group.path, ')');
      table.rows.push_back(std::move(row));
    }
  }
  if (!table.rows.empty()) {
    table.processor = table.rows.front().processor;
    table.threads = table.rows.front().threads;
  }
  return table;
}

}  // namespace tessera
