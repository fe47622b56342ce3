// The file operations that saving needs, behind one interface, so that a test can make any of them fail. Every failure is an
// IoError naming operation, path and the system's reason: "vfs: write failed: path is runs/x/3/...: No space left on device".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class SystemCalls;

// A file being written. Destroyed without close(), it keeps whatever reached it and reports nothing.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual void write(std::string_view bytes) = 0;  // all of them
  // To stable storage. A failed sync is final: the kernel may have dropped the pages, so asking again proves nothing.
  virtual void sync() = 0;
  virtual void close() = 0;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;  // symbolic links are not followed
};

class Vfs {
 public:
  using Path = std::filesystem::path;
  virtual ~Vfs() = default;

  virtual std::string read_file(const Path& path) = 0;
  virtual std::unique_ptr<WritableFile> create(const Path& path) = 0;  // fails when the path exists
  virtual std::vector<DirectoryEntry> list(const Path& directory) = 0;  // sorted by name
  virtual bool exists(const Path& path) = 0;
  virtual std::uint64_t file_size(const Path& path) = 0;
  virtual std::uint64_t free_space(const Path& path) = 0;  // bytes an unprivileged process may still write

  virtual void rename(const Path& from, const Path& to) = 0;  // fails when `to` exists
  virtual void replace(const Path& from, const Path& to) = 0;  // atomically takes the place of `to`
  virtual void remove(const Path& path) = 0;  // a file or an empty directory
  virtual void make_directory(const Path& path) = 0;  // fails when the path exists
  // Makes the names in a directory durable. Part of creating, renaming and removing, but batched by the caller.
  virtual void sync_directory(const Path& path) = 0;

  // Directory and contents, depth first, as a sequence of list() and remove().
  void remove_tree(const Path& directory);
};

// The operating system's files. Opening, reading and writing go on after EINTR and short counts, a bounded number of times
// without progress; a failed fsync or close is final, EINTR included. Descriptors are not inherited by child processes.
class RealVfs final : public Vfs {
 public:
  RealVfs();
  explicit RealVfs(SystemCalls& calls) : calls_(calls) {}  // which must outlive the files made

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
  SystemCalls& calls_;
};

Vfs& real_vfs();

// Creates or replaces a small file, or that at the end of a symbolic link, so that a reader sees the old bytes or the new ones,
// also after a power cut: write_atomically() (core/io/atomic_file.h) of all of its bytes at once.
void write_file_atomically(Vfs& vfs, const std::filesystem::path& path, std::string_view bytes);

}  // namespace tessera
