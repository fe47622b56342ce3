// The system calls below what reads and writes files, one method each with the call's own contract (-1, null or MAP_FAILED, and
// errno), so that a test can interrupt, shorten or fail any of them.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstddef>

namespace tessera {

class SystemCalls {
 public:
  virtual ~SystemCalls() = default;
  virtual int open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
  virtual ssize_t read(int file, void* bytes, std::size_t size) { return ::read(file, bytes, size); }
  virtual ssize_t write(int file, const void* bytes, std::size_t size) { return ::write(file, bytes, size); }
  virtual int fsync(int file) { return ::fsync(file); }
  virtual int close(int file) { return ::close(file); }
  virtual int fstat(int file, struct stat& status) { return ::fstat(file, &status); }
  virtual int lstat(const char* path, struct stat& status) { return ::lstat(path, &status); }
  virtual int statvfs(const char* path, struct statvfs& space) { return ::statvfs(path, &space); }
  virtual int rename(const char* from, const char* to) { return ::rename(from, to); }
  virtual int rename_new(const char* from, const char* to) { return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE); }
  virtual int unlink(const char* path) { return ::unlink(path); }
  virtual int rmdir(const char* path) { return ::rmdir(path); }
  virtual int mkdir(const char* path, mode_t mode) { return ::mkdir(path, mode); }
  virtual DIR* opendir(const char* path) { return ::opendir(path); }
  virtual dirent* readdir(DIR* directory) { return ::readdir(directory); }  // null with errno 0 at the end
  virtual int closedir(DIR* directory) { return ::closedir(directory); }
  // The first `size` bytes of a file, to be read.
  virtual void* mmap(std::size_t size, int file) { return ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0); }
  virtual int munmap(void* bytes, std::size_t size) { return ::munmap(bytes, size); }
};

inline SystemCalls& operating_system() {
  static SystemCalls calls;
  return calls;
}

}  // namespace tessera
