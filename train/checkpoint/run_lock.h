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

// A lock on a file that several processes append to in turn. The constructor waits until no other process holds the lock. It
// creates the file, empty, where there is none.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& file);  // throws IoError when it cannot be opened
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int fd_;
};

}  // namespace tessera
