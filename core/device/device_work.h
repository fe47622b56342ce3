// Waiting for a device, timing what it does, and recording work once to replay it often.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/device/device.h"

namespace tessera {

// Returns once the device has done all it was given. Counted in transfer_stats(); nothing to do on the CPU.
void synchronize(Device device);

// Seconds that the device takes for what `work` gives it: by the host's clock on the CPU, by events on a GPU's stream. Waits.
double seconds_on(Device device, const std::function<void()>& work);

// While it lives, seconds_on() reads the host's time from `seconds`, on every thread: for tests of what follows from times,
// which plan the times. `waited` gives what cpu::CoreWait (core/cpu/core_wait.h) reads meanwhile; empty: threads never wait.
class HostClock {
 public:
  explicit HostClock(std::function<double()> seconds, std::function<double()> waited = {});
  ~HostClock();
  static std::optional<double> waited();  // of the one that lives
  HostClock(const HostClock&) = delete;
  HostClock& operator=(const HostClock&) = delete;
};

// Device work that was recorded once: kernels with their arguments, addresses included. Memory that the work took while it was
// recorded belongs to the graph; tensors that live on in it, such as results, stay valid and hold the last replay's values.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual void replay() = 0;  // queues the work; does not wait
  virtual std::size_t kernels() const = 0;  // nodes that were recorded

 protected:
  DeviceGraph() = default;
};

// Runs `work` on the host while the device only records it: nothing is computed until replay(). The work must not wait for the
// device or read from it, and must have run once before, so that handles, plans and choices exist. Throws DeviceError on the
// CPU, and when the work could not be recorded; what `work` throws passes through. The device is usable afterwards either way.
std::unique_ptr<DeviceGraph> record_graph(Device device, const std::function<void()>& work);

// Whether this thread is inside a record_graph().
bool recording_graph() noexcept;

namespace cpu {
void wait_for(Device device);
double seconds_of_work(Device device, const std::function<void()>& work);
std::unique_ptr<DeviceGraph> graph_of(Device device, const std::function<void()>& work);
}  // namespace cpu
namespace cuda {
void wait_for(Device device);
double seconds_of_work(Device device, const std::function<void()>& work);
std::unique_ptr<DeviceGraph> graph_of(Device device, const std::function<void()>& work);
}  // namespace cuda

}  // namespace tessera
