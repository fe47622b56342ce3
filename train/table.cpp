#include "train/table.h"

#include <algorithm>
#include <map>
#include <ostream>

#include "core/error.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "train/checkpoint/store.h"
#include "train/config/yaml.h"
#include "train/data/builtin.h"
#include "train/environment.h"
#include "train/evaluate.h"
#include "train/experiment.h"
#include "train/model_state.h"
#include "train/position.h"
#include "train/run_folder.h"

namespace tessera {
namespace {

// One finished stage of one run, as its checkpoint gives it back.
struct StageModel {
  std::string stage;
  std::unique_ptr<Module> model;
  std::int64_t file_bytes = 0;
};

struct LoadedRun {
  RunFolder folder;
  ExperimentConfig config;
  DataSplits data;
  Shape input;
  std::vector<StageModel> stages;
};

// The last checkpoint of each stage that has ended, in stage order.
std::vector<StageModel> load_stages(Vfs& vfs, const RunFolder& folder) {
  const CheckpointStore store(vfs, folder.checkpoints());
  std::vector<StageModel> stages;
  for (const std::int64_t step : store.steps()) {
    const Checkpoint checkpoint = store.load(step);
    if (!read<Position>(checkpoint.manifest.at("position")).stage_done) continue;
    StageModel stage;
    stage.stage = checkpoint.manifest.at("stage_name").as_string();
    stage.model = rebuild(checkpoint.manifest.at("model"), builtin_layers());
    load_model_state(*stage.model, checkpoint.parts.at("model"));
    stage.file_bytes = static_cast<std::int64_t>(vfs.file_size(checkpoint.folder / "model.safetensors"));
    stages.push_back(std::move(stage));
  }
  TESSERA_CHECK(!stages.empty(), ConfigError, folder.path(), ": no stage has ended yet; nothing to tabulate");
  return stages;
}

LoadedRun load_run(Vfs& vfs, const std::string& path) {
  RunFolder folder = RunFolder::open(vfs, path);
  ExperimentConfig config = parse_experiment(load_yaml(folder.resolved_config())).config;
  DataSplits data = load_data(config.data, static_cast<std::uint64_t>(config.seed));
  const Shape& images = data.test.dataset->images.shape();
  const Shape input{1, images[1], images[2], images[3]};
  std::vector<StageModel> stages = load_stages(vfs, folder);
  return {std::move(folder), std::move(config), std::move(data), input, std::move(stages)};
}

double test_accuracy(const LoadedRun& run, Module& model) {
  Loader loader(run.data.test, evaluation_options(run.config.data.batch, run.data.normalization, static_cast<int>(run.config.threads.loader)));
  return evaluate(model, loader).accuracy();
}

void add_latency(const LoadedRun& run, std::span<TableRow> rows) {
  std::vector<Module*> networks;
  for (const StageModel& stage : run.stages) networks.push_back(stage.model.get());
  for (const std::int64_t batch : run.config.report.latency.batch) {
    Shape input = run.input;
    input.set(0, batch);
    const PairedTiming timing = time_networks(networks, input, run.config.report.latency.repeats);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].latency.push_back({batch, timing.networks[i], timing.speedup[i]});
  }
}

std::vector<TableRow> make_rows(const LoadedRun& run) {
  std::vector<TableRow> rows;
  for (const StageModel& stage : run.stages) {
    const Cost cost = total_cost(*stage.model, run.input);
    TableRow row;
    row.experiment = run.config.name;
    row.stage = stage.stage;
    row.parameters = cost.parameters;
    row.macs = cost.macs;
    row.file_bytes = stage.file_bytes;
    rows.push_back(std::move(row));
  }
  add_latency(run, rows);
  return rows;
}

}  // namespace

Table make_table(Vfs& vfs, std::span<const std::string> runs, std::ostream* out) {
  Table table;
  std::map<std::string, std::pair<std::size_t, std::size_t>> rows_of;  // name -> first row, count
  for (const std::string& path : runs) {
    const LoadedRun run = load_run(vfs, path);
    set_compute_threads(run.config.threads.compute);
    if (out != nullptr) *out << "evaluating " << run.folder.path() << std::endl;
    auto found = rows_of.find(run.config.name);
    if (found == rows_of.end()) {
      const std::vector<TableRow> rows = make_rows(run);
      found = rows_of.emplace(run.config.name, std::pair(table.rows.size(), rows.size())).first;
      table.rows.insert(table.rows.end(), rows.begin(), rows.end());
      table.threads = resolve_compute_threads(run.config.threads.compute);
      table.processor = describe_environment(run.config).at("processor").as_string();
    }
    const auto [first, count] = found->second;
    TESSERA_CHECK(run.stages.size() == count, ConfigError, path, ": ", run.stages.size(), " finished stages, the first run named ",
                  run.config.name, " has ", count, "; runs of one name must have come equally far");
    for (std::size_t i = 0; i < count; ++i) {
      table.rows[first + i].accuracies.push_back(test_accuracy(run, *run.stages[i].model));
    }
  }
  return table;
}

}  // namespace tessera
