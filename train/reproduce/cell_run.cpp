#include "train/reproduce/cell_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "train/config/yaml.h"
#include "train/plan/check.h"
#include "train/run/amend.h"
#include "train/run/config_change.h"
#include "train/run/environment.h"
#include "train/run/fork.h"
#include "train/run/new_run.h"
#include "train/run/saved_point.h"

namespace tessera {
namespace {

struct FoundRun {
  RunFolder folder;
  std::string cell;  // name of the parent folder
  Value resolved;
  Value settings;

  std::size_t stages() const { return resolved.at("stages").as_list().size(); }
};

// Later runs of a cell come before earlier ones. Folders that a killed process left unfinished are not runs.
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
      try {
        RunFolder folder = RunFolder::open(vfs, path + "/" + number.name);
        Experiment experiment = parse_experiment(load_yaml(folder.resolved_config()));
        const Value environment = parse_json(vfs.read_file(folder.environment()), folder.environment());
        Value settings = settings_for_figures(experiment.config, environment);
        found.push_back({std::move(folder), cell.name, std::move(experiment.resolved), std::move(settings)});
      } catch (const Error& error) {  // of another version, or damaged: other cells must not suffer from it
        log_warning(str("reproduce: passed over ", path, '/', number.name, ": ", error.what()));
      }
    }
  }
  return found;
}

// The checkpoints of the stages that have ended, in order.
std::vector<SavedPoint> ended_stages(Vfs& vfs, const RunFolder& run) {
  std::vector<SavedPoint> ended;
  for (SavedPoint& point : saved_points(vfs, run)) {
    if (point.position.stage_done && point.position.stage == std::ssize(ended)) ended.push_back(std::move(point));
  }
  return ended;
}

bool can_fork(Vfs& vfs, const FoundRun& run, const SavedPoint& point, const Value& config) {
  try {
    check_fork(run.resolved, config, {point.position, point.teachers()});
    return damage(vfs, point).empty();
  } catch (const ConfigError&) {  // a later stage learns from a teacher that the checkpoint does not keep
    return false;
  }
}

// The data may have moved since the run began.
void move_data(Vfs& vfs, const RunFolder& run, const std::string& root) {
  if (parse_experiment(load_yaml(run.resolved_config())).config.data.root == root) return;
  amend_run(vfs, run, std::vector{"data.root=" + root});
}

}  // namespace

Way find_way(Vfs& vfs, const Cell& cell, const std::string& runs) {
  const ExperimentConfig& config = cell.experiment.config;
  const Value settings = settings_for_figures(config, describe_environment(config));
  Way best;
  for (const FoundRun& run : runs_below(vfs, runs)) {
    const std::size_t shared = shared_stages(settings, run.settings);
    const bool own = run.cell == config.name && shared == config.stages.size() && shared == run.stages();
    if (!own && static_cast<std::int64_t>(shared) <= best.stages) continue;
    const std::vector<SavedPoint> ended = ended_stages(vfs, run.folder);
    if (own) {
      const auto done = static_cast<std::int64_t>(ended.size());
      return {.kind = ended.size() == shared ? Way::Kind::measure : Way::Kind::resume, .run = run.folder.path(), .stages = done};
    }
    std::int64_t usable = static_cast<std::int64_t>(std::min({shared, ended.size(), config.stages.size() - 1}));
    const auto end = [&] { return ended.begin() + (usable - 1); };
    while (usable > best.stages && !can_fork(vfs, run, *end(), cell.experiment.resolved)) --usable;
    if (usable <= best.stages) continue;
    best = {.kind = Way::Kind::fork, .run = run.folder.path(), .at = end()->stage, .stages = usable};
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
    if (way.kind == Way::Kind::resume) {
      const RunFolder own = RunFolder::open(vfs, way.run);
      move_data(vfs, own, cell.experiment.config.data.root);
      return Session::resume(vfs, own, options);
    }
    if (way.kind == Way::Kind::fork) {
      const RunFolder parent = RunFolder::open(vfs, way.run);
      return Session::resume(vfs, fork_run(vfs, parent, way.at, cell.experiment.config, runs), options);
    }
    const DecisionMap no_decisions;
    return new_run(vfs, cell.experiment, check_experiment(cell.experiment, &no_decisions), cell.text, runs, options);
  }();
  const RunOutcome outcome = session.run();
  return {.folder = session.folder().path(), .outcome = outcome};
}

}  // namespace tessera
