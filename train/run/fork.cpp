#include "train/run/fork.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "core/support/error.h"
#include "core/support/log.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/experiment.h"
#include "train/run/config_change.h"
#include "train/run/decisions_file.h"
#include "train/run/saved_point.h"
#include "train/run/stage_passes.h"

namespace tessera {
namespace {

// The manifest goes last, as the store writes it: without it the copy is no checkpoint.
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

// The ends of earlier stages, which the table compares with, then the start. The start's manifest pins them: they stay.
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

// The last stage whose passes have run, which wrote layers.csv.
std::optional<std::size_t> last_compressed(const ExperimentConfig& config, const Position& position) {
  std::optional<std::size_t> last;
  const std::size_t ready = static_cast<std::size_t>(position.stage) + (position.stage_ready ? 1 : 0);
  for (std::size_t i = 0; i < ready; ++i) {
    if (has_passes(config.stages.at(i))) last = i;
  }
  return last;
}

// A run and the checkpoint to go on from.
struct Origin {
  const RunFolder& parent;
  const Experiment& parsed;
  const std::vector<SavedPoint>& points;
  const SavedPoint& start;
};

RunFolder make_fork(Vfs& vfs, const Origin& origin, const Value& after, const std::string& runs) {
  const RunFolder& parent = origin.parent;
  RunFolder folder = RunFolder::create(vfs, runs, after.at("name").as_string());
  const auto copy = [&](const std::string& from, const std::string& to) {
    if (vfs.exists(from)) write_file_atomically(vfs, to, vfs.read_file(from));
  };
  copy(parent.environment(), folder.environment());
  copy(parent.metrics(), folder.metrics());
  copy(parent.timing(), folder.timing());
  const auto compressed = last_compressed(origin.parsed.config, origin.start.position);
  if (compressed && compressed == last_compressed(origin.parsed.config, origin.points.back().position)) {
    copy(parent.layers(), folder.layers());
  }
  // What was chosen before this point is in the checkpoint. What the parent chose behind it is left: layers that a later stage
  // compresses are timed here and now.
  write_decisions(vfs, folder.decisions(), {});
  copy_checkpoints(vfs, origin.points, origin.start, folder);
  return folder;
}

void complete_fork(Vfs& vfs, const RunFolder& folder, const Value& config) {
  write_file_atomically(vfs, folder.config(), to_yaml(config));
  write_file_atomically(vfs, folder.resolved_config(), to_yaml(config));  // last: without it the folder is no run
}

}  // namespace

RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, std::span<const std::string> overrides,
                   const std::string& runs) {
  // Read as an experiment, so that keys of later versions have their defaults on both sides.
  const Experiment parsed = parse_experiment(load_yaml(parent.resolved_config()));
  const std::vector<SavedPoint> points = saved_points(vfs, parent);
  const SavedPoint& start = find_point(vfs, points, at, "fork");
  Value after = with_overrides(parsed.resolved, overrides, finished_stages(start.position));
  check_fork(parsed.resolved, after, {start.position, start.teachers()});
  after.set("device", resolve_device(after.at("device").as_string()).name());  // throws before there is a folder
  const RunFolder folder = make_fork(vfs, {parent, parsed, points, start}, after, runs);
  append_overrides(folder, str("forked from ", parent.path(), " at ", at), overrides);
  complete_fork(vfs, folder, after);
  return folder;
}

RunFolder fork_run(Vfs& vfs, const RunFolder& parent, const std::string& at, const ExperimentConfig& config,
                   const std::string& runs) {
  const Experiment parsed = parse_experiment(load_yaml(parent.resolved_config()));
  const std::vector<SavedPoint> points = saved_points(vfs, parent);
  const SavedPoint& start = find_point(vfs, points, at, "fork");
  const Value after = write(config);
  check_fork(parsed.resolved, after, {start.position, start.teachers()});
  const RunFolder folder = make_fork(vfs, {parent, parsed, points, start}, after, runs);
  complete_fork(vfs, folder, after);
  return folder;
}

}  // namespace tessera
