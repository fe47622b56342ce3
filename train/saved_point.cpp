#include "train/saved_point.h"

#include <algorithm>
#include <tuple>

#include "core/config/read.h"
#include "core/error.h"
#include "core/log.h"

namespace tessera {

std::vector<SavedPoint> saved_points(Vfs& vfs, const RunFolder& run) {
  std::vector<SavedPoint> points;
  const std::filesystem::path root = run.checkpoints();
  if (!vfs.exists(root)) return points;
  for (const DirectoryEntry& entry : vfs.list(root)) {
    if (!entry.is_directory || !entry.name.starts_with("step-")) continue;
    try {
      Manifest manifest = read_manifest(vfs, root / entry.name);
      const Position position = read<Position>(manifest.extra.at("position"));
      const std::string stage = manifest.extra.at("stage_name").as_string();
      points.push_back({root / entry.name, std::move(manifest), position, stage});
    } catch (const IoError& error) {
      log_warning(str("passed over a damaged checkpoint: ", error.what()));
    }
  }
  // The longer name of one step is its later revision: step-7, step-7.1, ..., step-7.10.
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

}  // namespace tessera
