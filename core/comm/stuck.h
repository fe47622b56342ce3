// Tells a wait that takes too long from one that goes on, by turns that a watcher takes about once a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace tessera {

class StuckWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A turn that comes later than `longest_turn` after the one before shows that the process was suspended: the wait then begins
  // again.
  StuckWatch(std::chrono::seconds limit, std::chrono::seconds longest_turn) : limit_(limit), longest_turn_(longest_turn) {}

  // One turn. `work` is what is waited for, by a number of its own, or nothing. Whether the same work has been waited for at
  // every turn for more than the limit.
  bool is_stuck(std::optional<std::uint64_t> work, Time now) {
    const bool goes_on = work && waits_ && *work == work_ && now - last_ <= longest_turn_;
    waits_ = work.has_value();
    last_ = now;
    if (!goes_on) {
      work_ = work.value_or(0);
      since_ = now;
    }
    return waits_ && now - since_ > limit_;
  }

 private:
  std::chrono::seconds limit_, longest_turn_;
  bool waits_ = false;
  std::uint64_t work_ = 0;
  Time since_{}, last_{};
};

}  // namespace tessera
