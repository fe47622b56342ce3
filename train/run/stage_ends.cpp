#include "train/run/stage_ends.h"

#include <utility>

#include "core/config/read.h"
#include "core/support/error.h"
#include "train/checkpoint/store.h"
#include "train/run/position.h"
#include "train/run/saved_model.h"

namespace tessera {
namespace {

StageEnd load_stage_end(Vfs& vfs, const CheckpointStore& store, std::int64_t step, const Value& manifest,
                        const std::string& verb) {
  const Checkpoint checkpoint = store.load(step);
  // If the stage's end is damaged, the store may return an older revision of the step, from before the stage's end.
  TESSERA_CHECK(checkpoint.manifest == manifest, IoError, verb, ": the last checkpoint of stage '",
                manifest.at("stage_name").as_string(), "', step ", step,
                ", is damaged: ", checkpoint.damaged.empty() ? "it changed while it was read" : checkpoint.damaged.front());
  StageEnd end;
  end.stage = manifest.at("stage_name").as_string();
  end.model = saved_model(checkpoint);
  end.file_bytes = static_cast<std::int64_t>(vfs.file_size(checkpoint.folder / "model.safetensors"));
  return end;
}

}  // namespace

std::vector<StageEnd> load_stage_ends(Vfs& vfs, const RunFolder& run, const std::string& verb) {
  const CheckpointStore store(vfs, run.checkpoints());
  std::vector<StageEnd> ends;
  for (const std::int64_t step : store.steps()) {
    const Value manifest = store.manifest(step);
    if (!read<Position>(manifest.at("position")).stage_done) continue;
    ends.push_back(load_stage_end(vfs, store, step, manifest, verb));
  }
  return ends;
}

}  // namespace tessera
