// The real files, with one operation failing: the n-th that changes something (create, write, sync, close, rename, remove,
// ...). As ENOSPC does, the failing write leaves half of its bytes behind. `Fault::crash` fails everything after it as well,
// which is what a killed process leaves. Counts and logs the operations, so that a test can ask for each in turn.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/io/vfs.h"

namespace tessera {

enum class Fault { once, crash };

class FaultyVfs final : public Vfs {
 public:
  static constexpr int kNever = -1;
  explicit FaultyVfs(int failing = kNever, Fault fault = Fault::once) : failing_(failing), fault_(fault) {}

  int operations() const noexcept { return count_; }
  const std::vector<std::string>& log() const noexcept { return log_; }
  std::uint64_t reported_free_space = ~std::uint64_t{0};

  std::string read_file(const Path& path) override { return after_crash("read", path), real_vfs().read_file(path); }
  std::vector<DirectoryEntry> list(const Path& path) override { return after_crash("list", path), real_vfs().list(path); }
  bool exists(const Path& path) override { return after_crash("exists", path), real_vfs().exists(path); }
  std::uint64_t file_size(const Path& path) override { return after_crash("size", path), real_vfs().file_size(path); }
  std::uint64_t free_space(const Path&) override { return reported_free_space; }

  std::unique_ptr<WritableFile> create(const Path& path) override {
    step("create", path);
    return std::make_unique<File>(*this, path);
  }
  void rename(const Path& from, const Path& to) override { step("rename", to), real_vfs().rename(from, to); }
  void replace(const Path& from, const Path& to) override { step("replace", to), real_vfs().replace(from, to); }
  void remove(const Path& path) override { step("remove", path), real_vfs().remove(path); }
  void make_directory(const Path& path) override { step("mkdir", path), real_vfs().make_directory(path); }
  void sync_directory(const Path& path) override { step("syncdir", path), real_vfs().sync_directory(path); }

 private:
  class File final : public WritableFile {
   public:
    File(FaultyVfs& vfs, Path path) : vfs_(vfs), path_(std::move(path)), file_(real_vfs().create(path_)) {}
    void write(std::string_view bytes) override {
      try {
        vfs_.step("write", path_);
      } catch (const IoError&) {
        if (!vfs_.crashed_before()) file_->write(bytes.substr(0, bytes.size() / 2));
        throw;
      }
      file_->write(bytes);
    }
    void sync() override { vfs_.step("sync", path_), file_->sync(); }
    void close() override { vfs_.step("close", path_), file_->close(); }

   private:
    FaultyVfs& vfs_;
    Path path_;
    std::unique_ptr<WritableFile> file_;
  };

  bool crashed_before() const noexcept { return fault_ == Fault::crash && failing_ != kNever && count_ > failing_ + 1; }
  void step(const char* operation, const Path& path) {
    const int index = count_++;
    log_.push_back(str(operation, " ", path.filename().string()));
    if (index == failing_ || crashed_before()) {
      throw IoError(str("vfs: ", operation, " failed: path is ", path.string(), ": No space left on device"));
    }
  }
  void after_crash(const char* operation, const Path& path) const {
    const bool crashed = fault_ == Fault::crash && failing_ != kNever && count_ > failing_;
    TESSERA_CHECK(!crashed, IoError, "vfs: ", operation, " failed: path is ", path.string(), ": process is gone");
  }

  int failing_;
  Fault fault_;
  int count_ = 0;
  std::vector<std::string> log_;
};

}  // namespace tessera
