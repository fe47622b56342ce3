#include "train/checkpoint/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "core/support/host.h"

namespace tessera {
namespace {

std::string identity() { return str("process ", ::getpid(), " on ", host_name()); }

}  // namespace

RunLock::RunLock(const std::filesystem::path& folder) : fd_(-1) {
  const std::filesystem::path path = folder / "LOCK";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  TESSERA_CHECK(fd_ >= 0, IoError, "lock: open failed: path is ", path.string(), ": ", std::strerror(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(std::exchange(fd_, -1));
    TESSERA_CHECK(error == EWOULDBLOCK, IoError, "lock: flock failed: path is ", path.string(), ": ", std::strerror(error));
    throw IoError(str("lock: ", folder.string(), " is being written by ", real_vfs().read_file(path),
                      "; stop it first or wait for its end"));
  }
  const std::string holder = identity();
  if (::pwrite(fd_, holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size()) ||
      ::ftruncate(fd_, static_cast<off_t>(holder.size())) != 0) {
    const int error = errno;
    ::close(std::exchange(fd_, -1));
    throw IoError(str("lock: write failed: path is ", path.string(), ": ", std::strerror(error)));
  }
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

FileLock::FileLock(const std::filesystem::path& file) : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  TESSERA_CHECK(fd_ >= 0, IoError, "lock: open failed: path is ", file.string(), ": ", std::strerror(errno));
  while (::flock(fd_, LOCK_EX) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    ::close(std::exchange(fd_, -1));
    throw IoError(str("lock: flock failed: path is ", file.string(), ": ", std::strerror(error)));
  }
}

FileLock::~FileLock() { ::close(fd_); }

}  // namespace tessera
