#include "core/io/vfs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/file_descriptor.h"
#include "core/support/error.h"

namespace tessera {
namespace {

using Path = Vfs::Path;

[[noreturn]] void fail(const char* operation, const Path& path, int error) {
  throw IoError(str("vfs: ", operation, " failed: path is ", path.string(), ": ", std::strerror(error)));
}

class RealFile final : public WritableFile {
 public:
  RealFile(SystemCalls& calls, Path path)
      : calls_(calls), path_(std::move(path)), fd_(calls, path_.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644) {
    if (fd_.get() < 0) fail("create", path_, errno);
  }

  void write(std::string_view bytes) override {
    require_usable("write");
    int idle = 0;
    while (!bytes.empty()) {
      const ssize_t count = retry_on_interrupt([&] { return calls_.write(fd_.get(), bytes.data(), bytes.size()); });
      if (count < 0) give_up("write", errno);
      idle = count == 0 ? idle + 1 : 0;
      if (idle == kMaxAttempts) give_up("write", EIO);
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void sync() override {
    require_usable("fsync");
    if (calls_.fsync(fd_.get()) != 0) give_up("fsync", errno);
  }

  void close() override {
    require_open("close");
    // Linux frees the descriptor even when close fails, EINTR included: a second call could close someone else's file.
    if (calls_.close(fd_.release()) != 0) fail("close", path_, errno);
  }

 private:
  void require_open(const char* operation) const {
    TESSERA_CHECK(fd_.get() >= 0, IoError, "vfs: ", operation, " failed: path is ", path_.string(), ": file is closed");
  }
  void require_usable(const char* operation) const {
    require_open(operation);
    TESSERA_CHECK(!failed_, IoError, "vfs: ", operation, " failed: path is ", path_.string(),
                  ": an earlier write or fsync failed");
  }
  [[noreturn]] void give_up(const char* operation, int error) {
    failed_ = true;
    fail(operation, path_, error);
  }

  SystemCalls& calls_;
  Path path_;
  FileDescriptor fd_;
  bool failed_ = false;
};

class Directory {
 public:
  Directory(SystemCalls& calls, const Path& path) : calls_(calls), path_(path), handle_(calls.opendir(path.c_str())) {
    if (!handle_) fail("list", path, errno);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { calls_.closedir(handle_); }

  // Returns null at the end.
  const dirent* next() {
    errno = 0;
    const dirent* entry = calls_.readdir(handle_);
    if (!entry && errno != 0) fail("list", path_, errno);
    return entry;
  }

 private:
  SystemCalls& calls_;
  const Path& path_;
  DIR* handle_;
};

struct stat status_of(SystemCalls& calls, const char* operation, const Path& path) {
  struct stat status {};
  if (calls.lstat(path.c_str(), status) != 0) fail(operation, path, errno);
  return status;
}

}  // namespace

void Vfs::remove_tree(const Path& directory) {
  for (const DirectoryEntry& entry : list(directory)) {
    const Path path = directory / entry.name;
    entry.is_directory ? remove_tree(path) : remove(path);
  }
  remove(directory);
}

RealVfs::RealVfs() : calls_(operating_system()) {}

std::string RealVfs::read_file(const Path& path) try {
  const FileDescriptor file(calls_, path.c_str(), O_RDONLY);
  if (file.get() < 0) fail("open", path, errno);
  struct stat status {};
  if (calls_.fstat(file.get(), status) != 0) fail("stat", path, errno);
  std::string bytes(static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)), '\0');
  std::size_t size = 0;
  while (true) {
    if (size == bytes.size()) bytes.resize(size + 4096);  // an extra read finds the end, also where stat does not know the size
    const ssize_t count = retry_on_interrupt([&] { return calls_.read(file.get(), bytes.data() + size, bytes.size() - size); });
    if (count < 0) fail("read", path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  bytes.resize(size);
  return bytes;
} catch (const std::bad_alloc&) {
  fail("read", path, ENOMEM);
}

std::unique_ptr<WritableFile> RealVfs::create(const Path& path) { return std::make_unique<RealFile>(calls_, path); }

std::vector<DirectoryEntry> RealVfs::list(const Path& path) {
  std::vector<DirectoryEntry> entries;
  Directory directory(calls_, path);
  while (const dirent* entry = directory.next()) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const bool known = entry->d_type != DT_UNKNOWN;
    const bool is_directory = known ? entry->d_type == DT_DIR : S_ISDIR(status_of(calls_, "list", path / name).st_mode);
    entries.push_back({std::move(name), is_directory});
  }
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

bool RealVfs::exists(const Path& path) {
  struct stat status {};
  if (calls_.lstat(path.c_str(), status) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail("stat", path, errno);
  return false;
}

std::uint64_t RealVfs::file_size(const Path& path) { return static_cast<std::uint64_t>(status_of(calls_, "stat", path).st_size); }

std::uint64_t RealVfs::free_space(const Path& path) {
  struct statvfs space {};
  if (calls_.statvfs(path.c_str(), space) != 0) fail("statvfs", path, errno);
  return static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
}

void RealVfs::rename(const Path& from, const Path& to) {
  if (calls_.rename_new(from.c_str(), to.c_str()) == 0) return;
  // Network file systems refuse the flag; there the check is not atomic and the run's lock has to keep other writers out.
  if (errno != EINVAL && errno != ENOSYS) fail("rename", to, errno);
  if (exists(to)) fail("rename", to, EEXIST);
  replace(from, to);
}

void RealVfs::replace(const Path& from, const Path& to) {
  if (calls_.rename(from.c_str(), to.c_str()) != 0) fail("rename", to, errno);
}

void RealVfs::remove(const Path& path) {
  const bool directory = S_ISDIR(status_of(calls_, "remove", path).st_mode);
  if ((directory ? calls_.rmdir(path.c_str()) : calls_.unlink(path.c_str())) != 0) fail("remove", path, errno);
}

void RealVfs::make_directory(const Path& path) {
  if (calls_.mkdir(path.c_str(), 0777) != 0) fail("mkdir", path, errno);
}

void RealVfs::sync_directory(const Path& path) {
  const FileDescriptor directory(calls_, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (directory.get() < 0) fail("open", path, errno);
  if (calls_.fsync(directory.get()) != 0) fail("fsync", path, errno);
}

Vfs& real_vfs() {
  static RealVfs vfs;
  return vfs;
}

void write_file_atomically(Vfs& vfs, const std::filesystem::path& path, std::string_view bytes) {
  write_atomically(vfs, path, [bytes](WritableFile& file) { file.write(bytes); });
}

}  // namespace tessera
