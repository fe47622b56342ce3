// The checkpoints of a run as their manifests describe them, for callers that need to know where a run was, not what it held.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/vfs.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/store.h"
#include "train/run/position.h"
#include "train/run/run_folder.h"

namespace tessera {

// Its tensors are not read.
struct SavedPoint {
  std::filesystem::path folder;
  Manifest manifest;
  Position position;
  std::string stage;  // name of the stage it belongs to

  // Stages whose networks it keeps for later ones.
  std::vector<std::string> teachers() const;
  // What `fork --at` calls it: the stage that ends here, or the step.
  std::string label() const { return position.stage_done ? stage : std::to_string(manifest.step); }
};

// Oldest first. One whose manifest is damaged is left out, with a warning: it may be one that nobody needs.
std::vector<SavedPoint> saved_points(Vfs& vfs, const RunFolder& run);

// What is wrong with a checkpoint's files; empty when they are as they were written.
std::string damage(Vfs& vfs, const SavedPoint& point);

// The newest intact one that is called `at`: a stage that ended in it, or its step. Throws ConfigError listing what there is,
// and why a stage's best checkpoint is not among it; IoError when all of that name are damaged; messages begin with `verb`.
const SavedPoint& find_point(Vfs& vfs, const std::vector<SavedPoint>& points, const std::string& at, std::string_view verb);

// A checkpoint's tensors. Throws IoError naming the file when a byte of one is not as it was written.
Checkpoint load_folder(Vfs& vfs, const std::filesystem::path& folder, const Manifest& manifest);
Checkpoint load_point(Vfs& vfs, const SavedPoint& point);

// The run's newest intact checkpoint, with a warning for each damaged one that is newer. Throws IoError when none is intact.
Checkpoint load_newest(Vfs& vfs, const RunFolder& run);

// What `--at` names: the stage or step of find_point; "best": the best validation metric of the newest stage that has one; "":
// load_newest. Throws ConfigError also on a run without a checkpoint.
Checkpoint load_at(Vfs& vfs, const RunFolder& run, const std::string& at, std::string_view verb);

}  // namespace tessera
