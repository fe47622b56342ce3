// The checkpoints of one run: <folder>/step-00001200/{<part>.safetensors..., state.json, MANIFEST.json}. One exists whole or not
// at all: it is written to a temporary folder, every file fsynced, the manifest last, the folder fsynced and renamed, its parent
// fsynced, and read back. Only then are older ones removed. Saving a step again (a pass may change the model between two steps)
// adds step-00001200.1, .2, ..., so that nothing durable is ever replaced. Folders named in any other way, files and symbolic
// links are not checkpoints: they are neither read nor removed. A file inside a checkpoint that its manifest does not list is
// not read, and goes with the folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/nn/state.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/run_lock.h"

namespace tessera {

struct Checkpoint {
  std::int64_t step = 0;
  std::filesystem::path folder;
  std::map<std::string, State> parts;  // "model", "optimizer", "hook.admm", ...; tensors on the CPU
  Value manifest = Value::map();  // what save() was given
  std::vector<std::string> damaged;  // one message for each newer checkpoint that was passed over
};

struct SaveResult {
  std::filesystem::path folder;
  std::vector<std::string> warnings;  // the checkpoint is safe, but `latest` or an old one stayed
};

class CheckpointStore {
 public:
  // Reading needs no lock and changes nothing: a run may be looked at while it trains.
  CheckpointStore(Vfs& vfs, std::filesystem::path folder, int keep = 3);

  // Before the first save. Creates the folder, removes what interrupted saves left, and pins what the newest checkpoint had
  // pinned (everything that stands, when that cannot be read). The lock, which must be the run's and outlive the store, is what
  // makes leftovers of other processes safe to remove.
  void open_for_writing(const RunLock& lock);

  // Kept whatever `keep` says: the last checkpoint of each finished stage, the best one. Recorded by every later save.
  void pin(std::int64_t step);
  void unpin(std::int64_t step);

  // Throws IoError when the checkpoint is not durable and verified; then the earlier ones are as they were. `manifest_extra` is a
  // map: module tree, schedule position, data order, fingerprint. Part names are letters, digits, '_', '-' and '.'.
  SaveResult save(std::int64_t step, const std::map<std::string, State>& parts, const Value& manifest_extra);

  // Steps there are, oldest first, damaged ones included.
  std::vector<std::int64_t> steps() const;
  bool empty() const { return steps().empty(); }

  // The newest checkpoint whose every byte is as it was written. Throws IoError listing what is wrong with each when none is.
  Checkpoint load_latest() const;
  Checkpoint load(std::int64_t step) const;

  // What save() was given for the newest revision of a step, without reading its parts. Throws IoError naming the file.
  Value manifest(std::int64_t step) const;

 private:
  struct Folder {
    std::int64_t step = 0;
    std::int64_t revision = 0;
    std::string name;
    friend bool operator==(const Folder&, const Folder&) = default;
  };

  std::vector<Folder> folders() const;  // oldest first
  std::vector<Folder> revisions(std::int64_t step) const;  // throws when there are none
  std::set<std::int64_t> recorded_pins() const;
  std::string free_name(std::int64_t step) const;
  Checkpoint load_first_intact(const std::vector<Folder>& candidates, const std::string& wanted) const;
  Manifest read_own_manifest(const Folder& folder) const;
  Checkpoint read(const Folder& folder) const;
  void check_space(const std::map<std::string, State>& parts) const;
  void commit(const std::filesystem::path& target);
  void tidy_up(const std::string& saved, std::vector<std::string>& warnings);
  std::vector<std::string> superfluous(const std::string& saved) const;
  void discard(const std::string& name);
  std::string scratch_name(std::string_view kind, std::int64_t step);

  Vfs& vfs_;
  std::filesystem::path folder_;
  int keep_;
  bool writable_ = false;
  unsigned counter_ = 0;
  std::set<std::int64_t> pinned_;
};

}  // namespace tessera
