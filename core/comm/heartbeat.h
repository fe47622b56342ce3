// Finds out when a rank has stopped answering, whatever the others are doing: a thread of each rank sends to rank 0 every
// second, and hears from it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace tessera {

// Nobody waits any longer for a rank that has not been heard from for so long.
inline constexpr std::chrono::seconds kSilence{7};

// Lives between the construction and the destruction of an MpiCommunicator, both of which are collective. MPI was initialised
// for calls from several threads.
class Heartbeat {
 public:
  // `silent` is called, by the thread and maybe again and again, with the rank that was not heard of for kSilence. The time in
  // which this process itself was stopped does not count.
  explicit Heartbeat(std::function<void(int rank)> silent);
  ~Heartbeat();  // behind a barrier: no rank is missed any more
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  class Thread;

  std::unique_ptr<Thread> thread_;
};

}  // namespace tessera
