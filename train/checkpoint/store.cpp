#include "train/checkpoint/store.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "core/support/error.h"
#include "train/checkpoint/folder_name.h"
#include "train/checkpoint/kill_point.h"
#include "train/checkpoint/part_files.h"

namespace tessera {
namespace {

using Path = std::filesystem::path;

constexpr std::uint64_t kReservedBytes = 1u << 20;  // for state, manifest, headers and the file system's own blocks
constexpr int kMaxListings = 3;

bool is_leftover(std::string_view name) {
  return name.starts_with(".tmp-") || name.starts_with(".trash-") || name.starts_with(".latest.tmp-");
}

}  // namespace

CheckpointStore::CheckpointStore(Vfs& vfs, Path folder, int keep) : vfs_(vfs), folder_(std::move(folder)), keep_(keep) {
  TESSERA_CHECK(keep >= 1, ConfigError, "checkpoint.keep is ", keep, "; must be at least 1");
}

void CheckpointStore::open_for_writing(const RunLock&) {
  if (!vfs_.exists(folder_)) {
    vfs_.make_directory(folder_);
    vfs_.sync_directory(folder_.has_parent_path() ? folder_.parent_path() : Path("."));
  }
  for (const DirectoryEntry& entry : vfs_.list(folder_)) {
    if (!is_leftover(entry.name)) continue;
    entry.is_directory ? vfs_.remove_tree(folder_ / entry.name) : vfs_.remove(folder_ / entry.name);
  }
  pinned_ = recorded_pins();
  writable_ = true;
}

// Pins of the newest undamaged manifest. The session corrects them by the checkpoint that it resumes from (an older one if a part
// of the newest is damaged). If a manifest exists but cannot be read now, its pins are unknown and every step is kept.
std::set<std::int64_t> CheckpointStore::recorded_pins() const {
  std::set<std::int64_t> pins;
  const std::vector<Folder> all = folders();
  for (auto folder = all.rbegin(); folder != all.rend(); ++folder) {
    const Path path = folder_ / folder->name / kManifestName;
    std::string bytes;
    try {
      if (!vfs_.exists(path)) continue;
      bytes = vfs_.read_file(path);
    } catch (const IoError&) {
      for (const Folder& standing : all) pins.insert(standing.step);
      continue;
    }
    try {
      pins.merge(decode_manifest(bytes, path.string()).pinned);
      break;
    } catch (const IoError&) {
    }
  }
  return pins;
}

void CheckpointStore::pin(std::int64_t step) { pinned_.insert(step); }
void CheckpointStore::unpin(std::int64_t step) { pinned_.erase(step); }

SaveResult CheckpointStore::save(std::int64_t step, const std::map<std::string, State>& parts, const Value& manifest_extra) {
  TESSERA_CHECK(writable_, InternalError, "checkpoint: save before open_for_writing: folder is ", folder_.string());
  TESSERA_CHECK(step >= 0, InternalError, "checkpoint: step is ", step, "; must not be negative");
  check_space(parts);
  const Path temporary = folder_ / scratch_name(".tmp", step);
  const Path target = folder_ / free_name(step);
  try {
    vfs_.make_directory(temporary);
    Manifest manifest = write_parts(vfs_, temporary, parts);
    manifest.step = step;
    manifest.pinned = pinned_;
    manifest.extra = manifest_extra;
    write_hashed(vfs_, temporary, kManifestName, encode_manifest(manifest));
    vfs_.sync_directory(temporary);
    kill_point("saving", step);
    vfs_.rename(temporary, target);
  } catch (...) {
    try {
      if (vfs_.exists(temporary)) vfs_.remove_tree(temporary);
    } catch (const IoError&) {  // open_for_writing() removes the folder; the first failure is the one to report
    }
    throw;
  }
  commit(target);
  SaveResult result{target, {}};
  tidy_up(target.filename().string(), result.warnings);
  return result;
}

void CheckpointStore::check_space(const std::map<std::string, State>& parts) const {
  std::uint64_t bytes = kReservedBytes;
  for (const auto& [name, state] : parts) {
    for (const auto& [path, tensor] : state.tensors) bytes += tensor.bytes() + tensor.bytes() / 10;
  }
  const std::uint64_t free = vfs_.free_space(folder_);
  TESSERA_CHECK(free >= bytes, IoError, "checkpoint: not enough space: path is ", folder_.string(), ": ", free, " bytes free, ",
                bytes, " needed; free some or lower checkpoint.keep");
}

void CheckpointStore::commit(const Path& target) {
  try {
    vfs_.sync_directory(folder_);
    for (const FileRecord& record : read_manifest(vfs_, target).files) read_verified(vfs_, target, record);
  } catch (const IoError& error) {
    try {
      discard(target.filename().string());
    } catch (const IoError&) {  // the loader skips it if it is damaged, and if it is intact it does no harm
    }
    throw IoError(str("checkpoint: ", target.filename().string(),
                      " failed its check after saving; the earlier ones stand: ", error.what()));
  }
}

// On a full disk `latest` cannot be written before something is removed, so a failure here does not stop the later actions.
void CheckpointStore::tidy_up(const std::string& saved, std::vector<std::string>& warnings) {
  const auto attempt = [&](auto&& call) {
    try {
      call();
    } catch (const IoError& error) {
      warnings.push_back(str("checkpoint: saved, but tidying up failed: ", error.what()));
    }
  };
  attempt([&] { write_file_atomically(vfs_, folder_ / "latest", saved + "\n"); });  // for people; the loader does not read it
  attempt([&] {
    for (const std::string& name : superfluous(saved)) attempt([&] { discard(name); });
  });
}

// Checkpoints to remove: all but the newest revisions of pinned steps and, from `saved` backwards, of `keep_` unpinned steps.
// Unpinned steps after `saved` are removed too: the run was resumed from before them because they are damaged.
std::vector<std::string> CheckpointStore::superfluous(const std::string& saved) const {
  std::vector<std::string> names;
  const std::vector<Folder> all = folders();
  std::set<std::int64_t> seen;
  bool reached = false;
  int kept = 0;
  for (auto folder = all.rbegin(); folder != all.rend(); ++folder) {
    reached = reached || folder->name == saved;
    const bool newest_revision = seen.insert(folder->step).second;
    const bool pinned = pinned_.contains(folder->step);
    if (newest_revision && (pinned || (reached && kept < keep_))) {
      kept += pinned ? 0 : 1;
    } else {
      names.push_back(folder->name);
    }
  }
  std::ranges::reverse(names);  // oldest first: a reader that lists, then reads, finds the newest ones for longest
  return names;
}

// Renames the folder before removing it, so that a half-removed folder never has the name of a checkpoint.
void CheckpointStore::discard(const std::string& name) {
  const Path trash = folder_ / str(".trash-", name, "-", ::getpid(), "-", counter_++);
  vfs_.rename(folder_ / name, trash);
  vfs_.sync_directory(folder_);
  vfs_.remove_tree(trash);
}

std::string CheckpointStore::scratch_name(std::string_view kind, std::int64_t step) {
  return str(kind, "-", step, "-", ::getpid(), "-", counter_++);
}

std::string CheckpointStore::free_name(std::int64_t step) const {
  std::int64_t revision = 0;
  for (const Folder& folder : folders()) {
    if (folder.step == step) revision = folder.revision + 1;
  }
  while (vfs_.exists(folder_ / checkpoint_folder_name(step, revision))) ++revision;  // a file or link of that name is not ours
  return checkpoint_folder_name(step, revision);
}

std::vector<CheckpointStore::Folder> CheckpointStore::folders() const {
  std::vector<Folder> found;
  if (!vfs_.exists(folder_)) return found;
  for (const DirectoryEntry& entry : vfs_.list(folder_)) {
    const std::optional<CheckpointNumber> number = parse_checkpoint_folder_name(entry.name);
    if (entry.is_directory && number) found.push_back({number->step, number->revision, entry.name});
  }
  std::ranges::sort(found, {}, [](const Folder& folder) { return std::tuple(folder.step, folder.revision); });
  return found;
}

std::vector<CheckpointStore::Folder> CheckpointStore::revisions(std::int64_t step) const {
  std::vector<Folder> found = folders();
  std::erase_if(found, [&](const Folder& folder) { return folder.step != step; });
  TESSERA_CHECK(!found.empty(), IoError, "checkpoint: no ", checkpoint_folder_name(step), " in ", folder_.string());
  return found;
}

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> steps;
  for (const Folder& folder : folders()) {
    if (steps.empty() || steps.back() != folder.step) steps.push_back(folder.step);
  }
  return steps;
}

// A run that trains may remove a listed checkpoint before it is read. The next listing has the checkpoint that replaced it.
Checkpoint CheckpointStore::load_latest() const {
  std::vector<Folder> listed = folders();
  for (int listing = 1;; ++listing) {
    std::vector<Folder> now;
    try {
      Checkpoint found = load_first_intact(listed, "checkpoint");
      if (found.damaged.empty() || listing == kMaxListings || (now = folders()) == listed) return found;
    } catch (const IoError&) {
      now = folders();
      if (now == listed || listing == kMaxListings) throw;
    }
    listed = std::move(now);
  }
}

Checkpoint CheckpointStore::load(std::int64_t step) const {
  return load_first_intact(revisions(step), str("checkpoint of step ", step));
}

Value CheckpointStore::manifest(std::int64_t step) const { return read_own_manifest(revisions(step).back()).extra; }

Checkpoint CheckpointStore::load_first_intact(const std::vector<Folder>& candidates, const std::string& wanted) const {
  std::vector<std::string> damaged;
  for (auto folder = candidates.rbegin(); folder != candidates.rend(); ++folder) {
    try {
      Checkpoint checkpoint = read(*folder);
      checkpoint.damaged = std::move(damaged);
      return checkpoint;
    } catch (const IoError& error) {
      damaged.emplace_back(error.what());
    }
  }
  std::string message = str("checkpoint: no intact ", wanted, " in ", folder_.string());
  for (const std::string& reason : damaged) message += "\n  " + reason;
  throw IoError(message);
}

Manifest CheckpointStore::read_own_manifest(const Folder& folder) const {
  const Path path = folder_ / folder.name;
  Manifest manifest = read_manifest(vfs_, path);
  TESSERA_CHECK(manifest.step == folder.step, IoError, "checkpoint: ", (path / kManifestName).string(), ": step is ",
                manifest.step, ", the folder is named ", folder.name);
  return manifest;
}

Checkpoint CheckpointStore::read(const Folder& folder) const {
  const Path path = folder_ / folder.name;
  Manifest manifest = read_own_manifest(folder);
  std::map<std::string, State> parts = read_parts(vfs_, path, manifest);
  return {manifest.step, path, std::move(parts), std::move(manifest.extra), {}};
}

}  // namespace tessera
