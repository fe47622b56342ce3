// Files in memory that know what a power cut would leave. A file's bytes are durable once synced, a directory's names once the
// directory is; image() makes the file system that a machine could find after losing power now. Renames within one directory
// only, as every atomic commit needs. Deterministic: what survives follows from the seed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/io/vfs.h"

namespace tessera {

enum class Survival {
  nothing,  // only what was synced
  everything,  // as when the process dies and the machine does not
  names,  // every name, but no byte that was not synced
  torn,  // every name; of each unsynced file the sectors (512 bytes) before some point
  reordered,  // some of the pending changes of each directory, not only the first ones; some sectors of each unsynced file
};

class CrashVfs final : public Vfs {
 public:
  CrashVfs();
  CrashVfs(CrashVfs&&) noexcept;
  CrashVfs& operator=(CrashVfs&&) noexcept;
  ~CrashVfs() override;

  // Called before each operation that changes something: "write model.safetensors".
  std::function<void(const std::string& operation)> before_change;
  int changes() const noexcept { return changes_; }

  CrashVfs image(Survival survival, std::uint64_t seed) const;
  std::string fingerprint() const;  // of every name and byte, durable or not
  void overwrite(const Path& path, std::string_view bytes);  // damages an existing file, durably

  std::string read_file(const Path& path) override;
  std::unique_ptr<WritableFile> create(const Path& path) override;
  std::vector<DirectoryEntry> list(const Path& directory) override;
  bool exists(const Path& path) override;
  std::uint64_t file_size(const Path& path) override;
  std::uint64_t free_space(const Path& path) override;
  void rename(const Path& from, const Path& to) override;
  void replace(const Path& from, const Path& to) override;
  void remove(const Path& path) override;
  void make_directory(const Path& path) override;
  void sync_directory(const Path& path) override;

 private:
  struct Node;
  struct Change;
  class File;
  class Picker;
  using NodePtr = std::shared_ptr<Node>;

  NodePtr find(const Path& path) const;  // null when there is none
  NodePtr require(const char* operation, const Path& path, bool directory) const;
  NodePtr parent_of(const char* operation, const Path& path) const;
  void announce(const char* operation, const Path& path);
  void move(const Path& from, const Path& to);

  NodePtr root_;
  int changes_ = 0;
};

// The file systems that a machine could find after losing power now, each once. What survives of the reordered ones follows from
// `seed` too.
void each_crash(const CrashVfs& disk, std::uint64_t seed,
                const std::function<void(const std::string& name, CrashVfs& left)>& look);

}  // namespace tessera
