// The networks of a run's finished stages, for those who compare them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/io/vfs.h"
#include "core/nn/module.h"
#include "train/run/run_folder.h"

namespace tessera {

struct StageEnd {
  std::string stage;
  std::unique_ptr<Module> model;  // on the host
  std::int64_t file_bytes = 0;  // of the model's weights on disk
};

// From the last checkpoint of each stage that has ended, in stage order; other checkpoints are not read. Empty where none has
// ended. Throws IoError, beginning with `verb`, on one that is damaged.
std::vector<StageEnd> load_stage_ends(Vfs& vfs, const RunFolder& run, const std::string& verb);

}  // namespace tessera
