// A file descriptor with an owner, and calls that go on where a signal interrupts them: what all reads and writes of files share.
#pragma once

#include <cerrno>
#include <utility>

#include "core/io/system_calls.h"

namespace tessera {

// Signals come one at a time, so a call that is interrupted this often in a row, or moves no byte as often, will not get through.
inline constexpr int kMaxAttempts = 1000;

// Returns what call() returns, calling it again while that is -1 with EINTR.
template <class Call>
auto retry_on_interrupt(Call&& call) {
  decltype(call()) result = -1;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    result = call();
    if (result != -1 || errno != EINTR) break;
  }
  return result;
}

// Child processes do not inherit it. Closed with its scope, where a failure to close is not reported.
class FileDescriptor {
 public:
  // Where the system refuses, get() is -1 and errno has the reason. `calls` must outlive it.
  FileDescriptor(SystemCalls& calls, const char* path, int flags, mode_t mode = 0)
      : calls_(calls), fd_(retry_on_interrupt([&] { return calls.open(path, flags | O_CLOEXEC, mode); })) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) calls_.close(fd_);
  }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  SystemCalls& calls_;
  int fd_;
};

}  // namespace tessera
