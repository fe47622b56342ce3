// What has to hold of a checkpoint folder at any instant: after a crash, after a failed save, in the middle of one. Shared by the
// crash sweep and the error sweep. Contents are those of store_fixture.h, recognised by their manifest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/io/vfs.h"
#include "train/checkpoint/run_lock.h"

namespace tessera {

inline constexpr int kSweepKeep = 2;

struct SaveAction {
  std::int64_t step = 0;
  std::int64_t content = 0;
  std::set<std::int64_t> pins;
};

using Contents = std::map<std::int64_t, std::int64_t>;  // step -> content

struct Expectation {
  Contents standing;  // undamaged before the save; the last is the last good one
  std::optional<SaveAction> saving;  // may be there already
  Contents kept;  // of the standing ones, those that this save is not to remove
  std::set<std::int64_t> pinned;  // of the kept ones, those pinned before and after
  std::size_t most_pins = 0;
};

// Of what is in the folder now and a save that is about to begin.
Expectation expectation_of(Vfs& vfs, const std::filesystem::path& folder, std::optional<SaveAction> saving);

// What does not hold. The newest standing checkpoint loads, or the one being saved; all the kept ones load; no folder named as a
// checkpoint is damaged; `latest` is whole; reading changes nothing; reopened for writing, one more save works and leaves only
// checkpoints and `latest` in the folder. Changes the folder.
std::vector<std::string> broken_invariants(Vfs& vfs, const std::filesystem::path& folder, const RunLock& lock,
                                           const Expectation& expectation);

}  // namespace tessera
