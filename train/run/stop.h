// Why a run should stop at its next step boundary. Signal handlers only store into the flag; the trainer reads it between steps.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>

namespace tessera {

// Thrown out of work between steps that is given up for a stop.
struct Stopped {};

class StopRequest {
 public:
  // Safe in a signal handler.
  static void signal(int number) noexcept { pending_signal_ = number; }
  static void clear() noexcept { pending_signal_ = 0; }

  void set_time_limit(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }
  bool requested() const { return pending_signal_ != 0 || (deadline_ && std::chrono::steady_clock::now() >= *deadline_); }

 private:
  static inline volatile std::sig_atomic_t pending_signal_ = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline_;
};

}  // namespace tessera
