// The checkpoints of a run as their manifests describe them, for those who ask where a run was and not what it held.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/io/vfs.h"
#include "train/checkpoint/manifest.h"
#include "train/position.h"
#include "train/run_folder.h"

namespace tessera {

// Its tensors are not read.
struct SavedPoint {
  std::filesystem::path folder;
  Manifest manifest;
  Position position;
  std::string stage;  // name of the stage it belongs to

  // What `fork --at` calls it: the stage that ends here, or the step.
  std::string label() const { return position.stage_done ? stage : std::to_string(manifest.step); }
};

// Oldest first. One whose manifest is damaged is left out, with a warning: it may be one that nobody needs.
std::vector<SavedPoint> saved_points(Vfs& vfs, const RunFolder& run);

// What is wrong with a checkpoint's files; empty when they are as they were written.
std::string damage(Vfs& vfs, const SavedPoint& point);

}  // namespace tessera
