#include "core/device/device_work.h"

#include <chrono>
#include <utility>

#include "core/device/dispatch.h"
#include "core/support/error.h"

namespace tessera {
namespace {

thread_local bool recording = false;

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::function<double()> host_clock = &steady_seconds;
std::function<double()> planned_wait;  // empty: the system reports the wait

}  // namespace

namespace cpu {

void wait_for(Device) {}

double seconds_of_work(Device, const std::function<void()>& work) {
  const double begin = host_clock();
  work();
  return host_clock() - begin;
}

std::unique_ptr<DeviceGraph> graph_of(Device device, const std::function<void()>&) {
  throw DeviceError(str("record_graph: device is ", device, "; needs a GPU"));
}

}  // namespace cpu

HostClock::HostClock(std::function<double()> seconds, std::function<double()> waited) {
  host_clock = std::move(seconds);
  planned_wait = waited ? std::move(waited) : [] { return 0.0; };
}

HostClock::~HostClock() {
  host_clock = &steady_seconds;
  planned_wait = {};
}

std::optional<double> HostClock::waited() { return planned_wait ? std::optional(planned_wait()) : std::nullopt; }

void synchronize(Device device) { TESSERA_BACKEND(device, wait_for, device); }

double seconds_on(Device device, const std::function<void()>& work) {
  return TESSERA_BACKEND(device, seconds_of_work, device, work);
}

std::unique_ptr<DeviceGraph> record_graph(Device device, const std::function<void()>& work) {
  TESSERA_CHECK(!recording, InternalError, "record_graph: a graph is being recorded on this thread");
  return TESSERA_BACKEND(device, graph_of, device, [&] {
    recording = true;
    try {
      work();
    } catch (...) {
      recording = false;
      throw;
    }
    recording = false;
  });
}

bool recording_graph() noexcept { return recording; }

}  // namespace tessera
