#include "train/run/saved_point.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "train/checkpoint/folder_name.h"
#include "train/checkpoint/part_files.h"

namespace tessera {
namespace {

std::string best_step(const std::vector<SavedPoint>& points, const RunFolder& run, std::string_view verb) {
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    if (point->position.best_step >= 0) return std::to_string(point->position.best_step);
  }
  throw ConfigError(str(verb, ": ", run.path(), " has no best checkpoint: nothing was validated yet, or data.val is 0"));
}

bool holds_best(const SavedPoint& point) {
  return point.position.best_step >= 0 && point.manifest.pinned.contains(point.position.best_step);
}

// The newest checkpoint of each stage, the last stage first.
std::vector<const SavedPoint*> newest_of_stages(const std::vector<SavedPoint>& points) {
  std::vector<const SavedPoint*> newest;
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    if (newest.empty() || newest.back()->position.stage != point->position.stage) newest.push_back(&*point);
  }
  return newest;
}

// Why a step that was the best of a stage has no checkpoint; "" for any other step.
std::string fate_of_best(const std::vector<SavedPoint>& points, const std::string& at) {
  const SavedPoint* later = nullptr;  // the nearest later stage that has a best
  for (const SavedPoint* const point : newest_of_stages(points)) {
    const std::int64_t step = point->position.best_step;
    if (step < 0 || std::to_string(step) != at) {
      if (holds_best(*point)) later = point;
      continue;
    }
    const std::string best = str("; it was the best of stage ", point->stage, ", which ");
    if (!holds_best(*point)) return best + "checkpoint.best: false did not keep";
    if (later == nullptr || points.back().manifest.pinned.contains(step)) {
      return best + "this folder lacks: a fork takes only its start and the ends of stages along";
    }
    return str(best, "was let go for that of stage ", later->stage, ", step ", later->position.best_step,
               " (checkpoint.keep_best: run)");
  }
  return "";
}

SavedPoint point_of(Vfs& vfs, const std::filesystem::path& folder, std::int64_t step) {
  Manifest manifest = read_manifest(vfs, folder);
  TESSERA_CHECK(manifest.step == step, IoError, "checkpoint: ", folder.string(), ": its manifest is of step ", manifest.step);
  const Position position = read<Position>(manifest.extra.at("position"));
  const std::string stage = manifest.extra.at("stage_name").as_string();
  return {folder, std::move(manifest), position, stage};
}

}  // namespace

std::vector<std::string> SavedPoint::teachers() const {
  std::vector<std::string> stages;
  const Value* const kept = manifest.extra.find("teachers");  // absent in manifests of older programs
  if (kept == nullptr) return stages;
  for (const Value::Entry& entry : kept->as_map()) stages.push_back(entry.key);
  return stages;
}

std::vector<SavedPoint> saved_points(Vfs& vfs, const RunFolder& run) {
  std::vector<SavedPoint> points;
  const std::filesystem::path root = run.checkpoints();
  if (!vfs.exists(root)) return points;
  for (const DirectoryEntry& entry : vfs.list(root)) {
    const std::optional<CheckpointNumber> number = parse_checkpoint_folder_name(entry.name);
    if (!entry.is_directory || !number) continue;
    try {
      points.push_back(point_of(vfs, root / entry.name, number->step));
    } catch (const IoError& error) {
      const bool removed = !vfs.exists(root / entry.name);  // by a run under way, after it was listed
      if (!removed) log_warning(str("passed over a damaged checkpoint: ", error.what()));
    }
  }
  // Among the names of one step, a longer one is a later revision: step-7, step-7.1, ..., step-7.10.
  std::ranges::sort(points, {}, [](const SavedPoint& point) {
    const std::string name = point.folder.filename().string();
    return std::tuple(point.manifest.step, name.size(), name);
  });
  return points;
}

std::string damage(Vfs& vfs, const SavedPoint& point) {
  try {
    for (const FileRecord& record : point.manifest.files) read_verified(vfs, point.folder, record);
    return "";
  } catch (const IoError& error) {
    return error.what();
  }
}

const SavedPoint& find_point(Vfs& vfs, const std::vector<SavedPoint>& points, const std::string& at, std::string_view verb) {
  std::string damaged;
  std::string known;
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    const std::string step = std::to_string(point->manifest.step);
    known = str(' ', step, point->position.stage_done ? "=" + point->stage : "", known);
    if (at != step && !(point->position.stage_done && at == point->stage)) continue;
    const std::string reason = damage(vfs, *point);
    if (reason.empty()) return *point;
    damaged += "\n  " + reason;
  }
  TESSERA_CHECK(damaged.empty(), IoError, verb, ": the checkpoint '", at, "' is damaged:", damaged);
  throw ConfigError(
      str(verb, ": no checkpoint '", at, '\'', fate_of_best(points, at), "; there are:", known.empty() ? " none" : known));
}

Checkpoint load_newest(Vfs& vfs, const RunFolder& run) {
  Checkpoint newest = CheckpointStore(vfs, run.checkpoints()).load_latest();
  for (const std::string& message : newest.damaged) log_warning(str("passed over a damaged checkpoint: ", message));
  return newest;
}

Checkpoint load_folder(Vfs& vfs, const std::filesystem::path& folder, const Manifest& manifest) {
  return {manifest.step, folder, read_parts(vfs, folder, manifest), manifest.extra, {}};
}

Checkpoint load_point(Vfs& vfs, const SavedPoint& point) { return load_folder(vfs, point.folder, point.manifest); }

Checkpoint load_at(Vfs& vfs, const RunFolder& run, const std::string& at, std::string_view verb) {
  const CheckpointStore store(vfs, run.checkpoints());
  TESSERA_CHECK(!store.empty(), ConfigError, verb, ": ", run.path(), " has no checkpoint yet");
  if (at.empty()) return load_newest(vfs, run);
  const std::vector<SavedPoint> points = saved_points(vfs, run);
  return load_point(vfs, find_point(vfs, points, at == "best" ? best_step(points, run, verb) : at, verb));
}

}  // namespace tessera
