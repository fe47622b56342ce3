#include "core/device/device_work.h"

#include <chrono>

#include "core/device/dispatch.h"
#include "core/support/error.h"

namespace tessera {
namespace {

thread_local bool recording = false;

}  // namespace

namespace cpu {

void wait_for(Device) {}

double seconds_of_work(Device, const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::unique_ptr<DeviceGraph> graph_of(Device device, const std::function<void()>&) {
  throw DeviceError(str("record_graph: device is ", device, "; needs a GPU"));
}

}  // namespace cpu

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
