#include "train/reproduce/cell_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/config/read.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/plan/check.h"
#include "train/run/fork.h"
#include "train/run/new_run.h"
#include "train/run/saved_point.h"

namespace tessera {
namespace {

struct FoundRun {
  RunFolder folder;
  std::string cell;  // name of the folder above
  Value settings;
  std::size_t stages = 0;
};

// Later runs of a cell stand before earlier ones. Folders that a killed process left unfinished are no runs.
std::vector<FoundRun> runs_below(Vfs& vfs, const std::string& runs) {
  std::vector<FoundRun> found;
  if (!vfs.exists(runs)) return found;
  for (const DirectoryEntry& cell : vfs.list(runs)) {
    if (!cell.is_directory) continue;
    const std::string path = runs + "/" + cell.name;
    std::vector<DirectoryEntry> numbers = vfs.list(path);
    std::ranges::sort(numbers, std::ranges::greater(),
                      [](const DirectoryEntry& each) { return std::pair(each.name.size(), each.name); });
    for (const DirectoryEntry& number : numbers) {
      if (!vfs.exists(path + "/" + number.name + "/config.resolved.yaml")) continue;
      RunFolder folder = RunFolder::open(vfs, path + "/" + number.name);
      const Value resolved = parse_experiment(load_yaml(folder.resolved_config())).resolved;
      const std::size_t stages = resolved.at("stages").as_list().size();
      found.push_back({std::move(folder), cell.name, settings_for_accuracy(resolved), stages});
    }
  }
  return found;
}

// The stages that have ended, in order, as their checkpoints stand.
std::vector<std::string> ended_stages(Vfs& vfs, const RunFolder& run) {
  std::vector<std::string> ended;
  for (const SavedPoint& point : saved_points(vfs, run)) {
    if (point.position.stage_done && point.position.stage == static_cast<std::int64_t>(ended.size()))
      ended.push_back(point.stage);
  }
  return ended;
}

}  // namespace

ExperimentConfig settled_config(const Cell& cell) {
  ExperimentConfig config = cell.experiment.config;
  settle_for_run(config);
  return config;
}

Way find_way(Vfs& vfs, const Cell& cell, const std::string& runs) {
  const ExperimentConfig config = settled_config(cell);
  const Value settings = settings_for_accuracy(write(config));
  Way best;
  for (const FoundRun& run : runs_below(vfs, runs)) {
    const std::size_t shared = shared_stages(settings, run.settings);
    const bool own = run.cell == config.name && shared == config.stages.size() && shared == run.stages;
    if (!own && static_cast<std::int64_t>(shared) <= best.stages) continue;
    const std::vector<std::string> ended = ended_stages(vfs, run.folder);
    if (own) {
      const auto done = static_cast<std::int64_t>(ended.size());
      return {.kind = ended.size() == shared ? Way::Kind::measure : Way::Kind::resume, .run = run.folder.path(), .stages = done};
    }
    const std::size_t usable = std::min({shared, ended.size(), config.stages.size() - 1});
    if (static_cast<std::int64_t>(usable) <= best.stages) continue;
    best = {
        .kind = Way::Kind::fork, .run = run.folder.path(), .at = ended[usable - 1], .stages = static_cast<std::int64_t>(usable)};
  }
  return best;
}

std::string way_text(const Way& way) {
  switch (way.kind) {
    case Way::Kind::measure: return "measure " + way.run;
    case Way::Kind::resume: return "resume " + way.run;
    case Way::Kind::fork: return str("fork ", way.run, " at ", way.at);
    case Way::Kind::train: break;
  }
  return "train";
}

CellRun run_cell(Vfs& vfs, const Cell& cell, const Way& way, const std::string& runs, const SessionOptions& options) {
  if (way.kind == Way::Kind::measure) return {.folder = way.run};
  Session session = [&] {
    if (way.kind == Way::Kind::resume) return Session::resume(vfs, RunFolder::open(vfs, way.run), options);
    if (way.kind == Way::Kind::fork) {
      const RunFolder parent = RunFolder::open(vfs, way.run);
      return Session::resume(vfs, fork_run(vfs, parent, way.at, settled_config(cell), runs), options);
    }
    return new_run(vfs, cell.experiment, check_experiment(cell.experiment), to_yaml(cell.experiment.resolved), runs, options);
  }();
  const RunOutcome outcome = session.run();
  return {.folder = session.folder().path(), .outcome = outcome};
}

}  // namespace tessera
