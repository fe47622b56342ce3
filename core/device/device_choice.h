// Choices by a device's clock.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/device/device.h"
#include "core/device/device_work.h"

namespace tessera {

// Times one piece of work by the device's clock, again and again. Short work on a GPU is recorded several times in a row and
// replayed: the host takes as long to queue a small kernel as the device to run it, and a recorded step does not queue. Work
// that is long, or cannot be recorded, is timed as the host queues it.
class DeviceClock {
 public:
  // `work` queues the work once; it must be ready to be recorded once it has run (record_graph()).
  DeviceClock(Device device, std::function<void()> work);

  // The time of running the work once. Waits for the device.
  double seconds();

 private:
  void settle();
  bool is_short() const;

  Device device_;
  std::function<void()> work_;
  bool settled_ = false;
  std::unique_ptr<DeviceGraph> graph_;
};

// Index of the candidate that decide() takes for `key`, by the clock of a GPU; 0 where nothing may be timed, as while a graph is
// recorded: the first one then has to do. `run(i)` queues candidate i once. A candidate that finds no memory, or that the device
// refuses, is not chosen, unless it is the first.
std::size_t choose_on(Device device, const std::string& key, std::span<const std::string> names,
                      const std::function<void(std::size_t)>& run);

}  // namespace tessera
