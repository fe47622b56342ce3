#include "core/io/vfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace tessera {
namespace {

using Path = Vfs::Path;

[[noreturn]] void fail(const char* operation, const Path& path, int error) {
  throw IoError(str("vfs: ", operation, " failed: path is ", path.string(), ": ", std::strerror(error)));
}

template <class Call>
auto retry_on_interrupt(Call&& call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result == -1 && errno == EINTR);
  return result;
}

class FileDescriptor {
 public:
  FileDescriptor(const char* operation, const Path& path, int flags, mode_t mode = 0)
      : fd_(retry_on_interrupt([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); })) {
    if (fd_ < 0) fail(operation, path, errno);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class RealFile final : public WritableFile {
 public:
  explicit RealFile(Path path) : path_(std::move(path)), fd_("create", path_, O_WRONLY | O_CREAT | O_EXCL, 0644) {}

  void write(std::string_view bytes) override {
    require_usable("write");
    while (!bytes.empty()) {
      const ssize_t count = retry_on_interrupt([&] { return ::write(fd_.get(), bytes.data(), bytes.size()); });
      if (count < 0) give_up("write", errno);
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void sync() override {
    require_usable("fsync");
    if (retry_on_interrupt([&] { return ::fsync(fd_.get()); }) != 0) give_up("fsync", errno);
  }

  void close() override {
    require_usable("close");
    // Linux frees the descriptor even when close fails, EINTR included: a second call could close someone else's file.
    if (::close(fd_.release()) != 0 && errno != EINTR) fail("close", path_, errno);
  }

 private:
  void require_usable(const char* operation) const {
    TESSERA_CHECK(fd_.get() >= 0, IoError, "vfs: ", operation, " failed: path is ", path_.string(), ": file is closed");
    TESSERA_CHECK(!failed_, IoError, "vfs: ", operation, " failed: path is ", path_.string(),
                  ": an earlier write or fsync failed");
  }
  [[noreturn]] void give_up(const char* operation, int error) {
    failed_ = true;
    fail(operation, path_, error);
  }

  Path path_;
  FileDescriptor fd_;
  bool failed_ = false;
};

struct stat status_of(const char* operation, const Path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) fail(operation, path, errno);
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

std::string RealVfs::read_file(const Path& path) {
  const FileDescriptor file("open", path, O_RDONLY);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail("stat", path, errno);
  std::string bytes(static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)), '\0');
  std::size_t size = 0;
  while (true) {
    if (size == bytes.size()) bytes.resize(size + 4096);  // one spare read finds the end, and sizes that stat does not know
    const ssize_t count = retry_on_interrupt([&] { return ::read(file.get(), bytes.data() + size, bytes.size() - size); });
    if (count < 0) fail("read", path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  bytes.resize(size);
  return bytes;
}

std::unique_ptr<WritableFile> RealVfs::create(const Path& path) { return std::make_unique<RealFile>(path); }

std::vector<DirectoryEntry> RealVfs::list(const Path& directory) {
  std::vector<DirectoryEntry> entries;
  std::error_code error;
  std::filesystem::directory_iterator item(directory, error);
  for (; !error && item != std::filesystem::directory_iterator(); item.increment(error)) {
    const std::filesystem::file_status status = item->symlink_status(error);
    if (error) break;
    entries.push_back({item->path().filename().string(), std::filesystem::is_directory(status)});
  }
  if (error) fail("list", directory, error.value());
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

bool RealVfs::exists(const Path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) fail("stat", path, errno);
  return false;
}

std::uint64_t RealVfs::file_size(const Path& path) { return static_cast<std::uint64_t>(status_of("stat", path).st_size); }

std::uint64_t RealVfs::free_space(const Path& path) {
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) != 0) fail("statvfs", path, errno);
  return static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
}

void RealVfs::rename(const Path& from, const Path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  // Network file systems refuse the flag; there the check is not atomic and the run's lock has to keep other writers out.
  if (errno != EINVAL && errno != ENOSYS) fail("rename", to, errno);
  if (exists(to)) fail("rename", to, EEXIST);
  replace(from, to);
}

void RealVfs::replace(const Path& from, const Path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename", to, errno);
}

void RealVfs::remove(const Path& path) {
  const bool directory = S_ISDIR(status_of("remove", path).st_mode);
  if ((directory ? ::rmdir(path.c_str()) : ::unlink(path.c_str())) != 0) fail("remove", path, errno);
}

void RealVfs::make_directory(const Path& path) {
  if (::mkdir(path.c_str(), 0755) != 0) fail("mkdir", path, errno);
}

void RealVfs::sync_directory(const Path& path) {
  const FileDescriptor directory("open", path, O_RDONLY | O_DIRECTORY);
  if (retry_on_interrupt([&] { return ::fsync(directory.get()); }) != 0) fail("fsync", path, errno);
}

Vfs& real_vfs() {
  static RealVfs vfs;
  return vfs;
}

void write_file_atomically(Vfs& vfs, const std::filesystem::path& path, std::string_view bytes) {
  static std::atomic<unsigned> counter{0};
  const Path parent = path.has_parent_path() ? path.parent_path() : Path(".");
  const Path temporary = parent / str(".", path.filename().string(), ".tmp-", ::getpid(), "-", counter++);
  try {
    const std::unique_ptr<WritableFile> file = vfs.create(temporary);
    file->write(bytes);
    file->sync();
    file->close();
    vfs.replace(temporary, path);
  } catch (const IoError&) {
    try {
      vfs.remove(temporary);
    } catch (const IoError&) {  // the first failure is the one to report
    }
    throw;
  }
  vfs.sync_directory(parent);
}

}  // namespace tessera
