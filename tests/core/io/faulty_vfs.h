// A file system with one operation failing: the n-th of those that change something (create, write, sync, close, rename, remove,
// ...), or with `reads` the n-th of all. As ENOSPC does, a failing write leaves half of its bytes behind. `Fault::lasting` fails
// everything after it as well, which is also what a killed process leaves. Counts and logs the operations, so that a test can ask
// for each in turn.
#pragma once

#include <cerrno>
#include <cstring>
#include <optional>

#include "core/support/error.h"
#include "tests/core/io/forwarding_vfs.h"

namespace tessera {

enum class Fault { once, lasting };

struct FaultPlan {
  std::optional<int> at = std::nullopt;  // never
  Fault fault = Fault::once;
  int error = ENOSPC;
  bool reads = false;
};

class FaultyVfs final : public ForwardingVfs {
 public:
  explicit FaultyVfs(const FaultPlan& plan = {}, Vfs& below = real_vfs()) : ForwardingVfs(below), plan_(plan) {}

  int operations() const noexcept { return count_; }
  const std::vector<std::string>& log() const noexcept { return log_; }
  std::uint64_t reported_free_space = ~std::uint64_t{0};

  std::string read_file(const Path& path) override { return look("open", path), below_.read_file(path); }
  std::vector<DirectoryEntry> list(const Path& path) override { return look("list", path), below_.list(path); }
  bool exists(const Path& path) override { return look("stat", path), below_.exists(path); }
  std::uint64_t file_size(const Path& path) override { return look("stat", path), below_.file_size(path); }
  std::uint64_t free_space(const Path& path) override { return look("statvfs", path), reported_free_space; }

  std::unique_ptr<WritableFile> create(const Path& path) override {
    step("create", path);
    return std::make_unique<File>(*this, path);
  }
  void rename(const Path& from, const Path& to) override { step("rename", to), below_.rename(from, to); }
  void replace(const Path& from, const Path& to) override { step("replace", to), below_.replace(from, to); }
  void remove(const Path& path) override { step("remove", path), below_.remove(path); }
  void make_directory(const Path& path) override { step("mkdir", path), below_.make_directory(path); }
  void sync_directory(const Path& path) override { step("syncdir", path), below_.sync_directory(path); }

 private:
  class File final : public ForwardingFile {
   public:
    File(FaultyVfs& vfs, Path path) : ForwardingFile(vfs.below_.create(path)), vfs_(vfs), path_(std::move(path)) {}
    void write(std::string_view bytes) override {
      const bool first = !vfs_.failed_;
      try {
        vfs_.step("write", path_);
      } catch (const IoError&) {
        if (first) below_->write(bytes.substr(0, bytes.size() / 2));
        throw;
      }
      below_->write(bytes);
    }
    void sync() override { vfs_.step("sync", path_), below_->sync(); }
    void close() override { vfs_.step("close", path_), below_->close(); }

   private:
    FaultyVfs& vfs_;
    Path path_;
  };

  void step(const char* operation, const Path& path) {
    const bool now = plan_.at == count_++;
    log_.push_back(str(operation, " ", path.filename().string()));
    if (now || (failed_ && plan_.fault == Fault::lasting)) fail(operation, path);
  }
  void look(const char* operation, const Path& path) {
    if (plan_.reads) return step(operation, path);
    if (failed_ && plan_.fault == Fault::lasting) fail(operation, path);
  }
  [[noreturn]] void fail(const char* operation, const Path& path) {
    failed_ = true;
    throw IoError(str("vfs: ", operation, " failed: path is ", path.string(), ": ", std::strerror(plan_.error)));
  }

  FaultPlan plan_;
  bool failed_ = false;
  int count_ = 0;
  std::vector<std::string> log_;
};

}  // namespace tessera
