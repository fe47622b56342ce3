#include "train/run/fork.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/nn/module.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/data/builtin.h"
#include "train/experiment.h"
#include "train/run/config_change.h"
#include "train/run/decisions_file.h"
#include "train/run/fork_pruning.h"
#include "train/run/run_state.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/stage_passes.h"
#include "train/run/undecided.h"

namespace tessera {
namespace {

// Copies the manifest last, as the store writes it last: without it the copy does not count as a checkpoint.
void copy_checkpoint(Vfs& vfs, const SavedPoint& point, const RunFolder& to) {
  const std::filesystem::path target = std::filesystem::path(to.checkpoints()) / point.folder.filename();
  const auto write = [&](const std::string& name, const std::string& bytes) {
    const auto file = vfs.create(target / name);
    file->write(bytes);
    file->sync();
    file->close();
  };
  vfs.make_directory(target);
  for (const FileRecord& record : point.manifest.files) write(record.name, read_verified(vfs, point.folder, record));
  const std::string manifest(kManifestName);
  write(manifest, vfs.read_file(point.folder / manifest));
  vfs.sync_directory(target);
  vfs.sync_directory(to.checkpoints());
}

// Copies the ends of earlier stages, which the table compares with, then the start. The start's manifest pins them, so they stay.
void copy_checkpoints(Vfs& vfs, const std::vector<SavedPoint>& points, const SavedPoint& start, const RunFolder& to) {
  for (const SavedPoint& point : points) {
    if (!point.position.stage_done || point.position.stage >= start.position.stage) continue;
    const std::string reason = damage(vfs, point);
    if (reason.empty()) {
      copy_checkpoint(vfs, point, to);
    } else {
      log_warning(str("fork: stage ", point.stage, " will be missing from the table, its checkpoint is damaged: ", reason));
    }
  }
  copy_checkpoint(vfs, start, to);
}

// The number of stages whose passes have run.
std::size_t ready_stages(const Position& position) {
  return static_cast<std::size_t>(position.stage) + (position.stage_ready ? 1 : 0);
}

// The last of those stages that had any passes. It wrote layers.csv.
std::optional<std::size_t> last_compressed(const ExperimentConfig& config, const Position& position) {
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < ready_stages(position); ++i) {
    if (has_passes(config.stages.at(i))) last = i;
  }
  return last;
}

// A run and the checkpoint to go on from.
struct Origin {
  Vfs& vfs;
  const RunFolder& parent;
  const std::string& at;  // as the caller named the checkpoint
  Experiment parsed;  // parsed, so that keys of later versions have their defaults on both sides
  std::vector<SavedPoint> points;
  std::size_t index = 0;  // index of the checkpoint in points

  const SavedPoint& start() const { return points[index]; }
};

Origin open_origin(Vfs& vfs, const RunFolder& parent, const std::string& at) {
  Origin origin{vfs, parent, at, parse_experiment(load_yaml(parent.resolved_config())), saved_points(vfs, parent)};
  origin.index = static_cast<std::size_t>(&find_point(vfs, origin.points, at, "fork") - origin.points.data());
  return origin;
}

void fill_fork(const Origin& origin, const RunFolder& folder) {
  Vfs& vfs = origin.vfs;
  const RunFolder& parent = origin.parent;
  const auto copy = [&](const std::string& from, const std::string& to) {
    if (vfs.exists(from)) write_file_atomically(vfs, to, vfs.read_file(from));
  };
  copy(parent.environment(), folder.environment());
  copy(parent.metrics(), folder.metrics());
  copy(parent.timing(), folder.timing());
  copy(parent.broken_images(), folder.broken_images());
  const auto compressed = last_compressed(origin.parsed.config, origin.start().position);
  if (compressed && compressed == last_compressed(origin.parsed.config, origin.points.back().position)) {
    copy(parent.layers(), folder.layers());
  }
  // The checkpoint holds the choices that were made before this point. The parent's later choices are not copied: layers that a
  // later stage compresses are timed again here.
  write_decisions(vfs, folder.decisions(), {});
  copy_checkpoints(vfs, origin.points, origin.start(), folder);
}

// Checks the timings of stages that begin after this point. If the network cannot be timed now, no pass will change that.
void check_timings_of_fork(const Origin& origin, const ExperimentConfig& config) {
  std::unique_ptr<Module> model;
  for (auto i = static_cast<std::size_t>(finished_stages(origin.start().position)); i < config.stages.size(); ++i) {
    for (const auto& [block, veto] : stage_vetoes(config.stages[i], config.report)) {
      if (veto.timing.phase != Phase::decode) continue;
      if (model == nullptr) model = saved_model(load_point(origin.vfs, origin.start()));
      for (const BlockProblem& problem : timing_problems(veto, *model, sample_shape(config.data)))
        throw ConfigError(str("fork: stages[", i, "].", block, '.', problem.key, ": ", problem.message));
    }
  }
}

void check_decisions_of_fork(const Origin& origin, const ExperimentConfig& config) {
  const SavedPoint& start = origin.start();
  const DecisionMap given = recorded_decisions(start.manifest.extra);
  const std::size_t first = ready_stages(start.position);
  std::vector<BlockProblem> problems = undecided_choices(config, given, first);
  // The network is as the passes of the next stage find it only where no step of training comes before them.
  const bool next = start.position.stage_done || !start.position.stage_ready;
  if (problems.empty() && next) {
    problems = undecided_layers(config, given, first, [&] { return saved_model(load_point(origin.vfs, start)); });
  }
  for (const BlockProblem& problem : problems) throw ConfigError(str("fork: ", problem.key, ": ", problem.message));
}

RunFolder make_fork(const Origin& origin, Value config, std::span<const std::string> overrides, const std::string& runs) {
  Vfs& vfs = origin.vfs;
  check_fork(origin.parsed.resolved, config, {origin.start().position, origin.start().teachers()});
  EpochLength epoch;
  check_pruning_of_fork(vfs, origin.start(), origin.parsed.resolved, config, epoch);
  const ExperimentConfig after = parse_experiment(config).config;
  check_timings_of_fork(origin, after);
  check_decisions_of_fork(origin, after);
  config.set("device", resolve_device(config.at("device").as_string()).name());  // throws before a folder is made
  refuse_on_device(after);
  RunFolder folder = RunFolder::create(vfs, runs, config.at("name").as_string());
  fill_fork(origin, folder);
  append_overrides(folder, str("forked from ", origin.parent.path(), " at ", origin.at), overrides);
  write_file_atomically(vfs, folder.config(), to_yaml(config));
  write_file_atomically(vfs, folder.resolved_config(), to_yaml(config));  // last: without it the folder is not a run
  return folder;
}

}  // namespace

RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, std::span<const std::string> overrides,
                   const std::string& runs) {
  const Origin origin = open_origin(vfs, parent, at);
  Value config = with_overrides(origin.parsed.resolved, overrides, finished_stages(origin.start().position));
  return make_fork(origin, std::move(config), overrides, runs);
}

RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, const ExperimentConfig& config,
                   const std::string& runs) {
  return make_fork(open_origin(vfs, parent, at), write(config), {}, runs);
}

}  // namespace tessera
