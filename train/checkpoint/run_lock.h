// Keeps a second writer out of a run folder. The lock is the kernel's (flock on <folder>/LOCK): it ends with the process that
// holds it, however that process ends, so there is no stale lock to clear. The file itself stays; it tells who holds the lock.
#pragma once

#include <filesystem>

namespace tessera {

class RunLock {
 public:
  // Throws IoError naming the holder's process id and host when another process, or another RunLock of this one, holds it.
  explicit RunLock(const std::filesystem::path& folder);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

 private:
  int fd_;
};

}  // namespace tessera
