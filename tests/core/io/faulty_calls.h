// System calls. The n-th one fails or, for a read or write, moves only half of its bytes; once, or with every later one.
// Counts and names them, so that a test can ask for each in turn, and knows how many descriptors and mappings are open.
#pragma once

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/io/system_calls.h"
#include "tests/core/io/faulty_vfs.h"

namespace tessera {

inline constexpr int kShort = 0;  // in place of an errno: half of the bytes

struct CallPlan {
  std::optional<int> at = std::nullopt;  // never
  Fault fault = Fault::once;
  int error = EIO;
};

class FaultyCalls final : public SystemCalls {
 public:
  explicit FaultyCalls(const CallPlan& plan = {}) : plan_(plan) {}

  const std::vector<std::string>& log() const noexcept {
    return log_;
  }  // "write", "close", ...; "release": of what was only read
  std::size_t open_handles() const noexcept { return files_.size() + directories_.size() + mappings_.size(); }

  int open(const char* path, int flags, mode_t mode) override {
    const bool creates = (flags & O_CREAT) != 0;
    if (fails(creates ? "create" : "open", path)) return -1;
    const int file = SystemCalls::open(path, flags, mode);
    if (file >= 0) files_[file] = {path, creates};
    return file;
  }
  ssize_t read(int file, void* bytes, std::size_t size) override {
    return fails("read", files_[file].path) ? -1 : SystemCalls::read(file, bytes, shortened(size));
  }
  ssize_t write(int file, const void* bytes, std::size_t size) override {
    return fails("write", files_[file].path) ? -1 : SystemCalls::write(file, bytes, shortened(size));
  }
  int fsync(int file) override { return fails("fsync", files_[file].path) ? -1 : SystemCalls::fsync(file); }
  int close(int file) override {  // the descriptor is gone also when it fails
    const File closed = files_[file];
    files_.erase(file);
    SystemCalls::close(file);
    return fails(closed.written ? "close" : "release", closed.path) ? -1 : 0;
  }
  int fstat(int file, struct stat& status) override {
    return fails("fstat", files_[file].path) ? -1 : SystemCalls::fstat(file, status);
  }
  int lstat(const char* path, struct stat& status) override {
    return fails("lstat", path) ? -1 : SystemCalls::lstat(path, status);
  }
  int statvfs(const char* path, struct statvfs& space) override {
    return fails("statvfs", path) ? -1 : SystemCalls::statvfs(path, space);
  }
  int rename(const char* from, const char* to) override { return fails("rename", to) ? -1 : SystemCalls::rename(from, to); }
  int rename_new(const char* from, const char* to) override {
    return fails("rename", to) ? -1 : SystemCalls::rename_new(from, to);
  }
  int unlink(const char* path) override { return fails("unlink", path) ? -1 : SystemCalls::unlink(path); }
  int rmdir(const char* path) override { return fails("rmdir", path) ? -1 : SystemCalls::rmdir(path); }
  int mkdir(const char* path, mode_t mode) override { return fails("mkdir", path) ? -1 : SystemCalls::mkdir(path, mode); }
  DIR* opendir(const char* path) override {
    if (fails("opendir", path)) return nullptr;
    DIR* directory = SystemCalls::opendir(path);
    if (directory) directories_.insert(directory);
    return directory;
  }
  dirent* readdir(DIR* directory) override { return fails("readdir", "") ? nullptr : SystemCalls::readdir(directory); }
  int closedir(DIR* directory) override {
    directories_.erase(directory);
    SystemCalls::closedir(directory);
    return fails("release", "") ? -1 : 0;
  }
  void* mmap(std::size_t size, int file) override {
    if (fails("mmap", files_[file].path)) return MAP_FAILED;
    void* const bytes = SystemCalls::mmap(size, file);
    if (bytes != MAP_FAILED) mappings_.insert(bytes);
    return bytes;
  }
  int munmap(void* bytes, std::size_t size) override {
    mappings_.erase(bytes);
    SystemCalls::munmap(bytes, size);
    return fails("release", "") ? -1 : 0;
  }

 private:
  struct File {
    std::string path;
    bool written = false;
  };
  bool fails(const char* call, const std::string& path) {
    hit_ = plan_.at == static_cast<int>(log_.size()) || (hit_ && plan_.fault == Fault::lasting);
    log_.push_back(str(call, " ", path.substr(path.rfind('/') + 1)));
    if (!hit_ || plan_.error == kShort) return false;
    errno = plan_.error;
    return true;
  }
  std::size_t shortened(std::size_t size) const { return hit_ ? std::max<std::size_t>(1, size / 2) : size; }

  CallPlan plan_;
  bool hit_ = false;
  std::map<int, File> files_;
  std::set<DIR*> directories_;
  std::set<void*> mappings_;
  std::vector<std::string> log_;
};

}  // namespace tessera
