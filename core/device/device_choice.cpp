#include "core/device/device_choice.h"

#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "core/device/decisions.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {
namespace {

constexpr double kShort = 1e-3;  // seconds; launch overhead is negligible in longer work
constexpr int kRecorded = 8;  // runs recorded in one graph
constexpr int kReadings = 3;  // of work that seems long: other processes may have used the device meanwhile

}  // namespace

DeviceClock::DeviceClock(Device device, std::function<void()> work) : device_(device), work_(std::move(work)) {}

bool DeviceClock::is_short() const {
  for (int reading = 0; reading < kReadings; ++reading) {
    if (seconds_on(device_, work_) <= kShort) return true;
  }
  return false;
}

// The first run may create handles and plans, so it is not timed.
void DeviceClock::settle() {
  settled_ = true;
  work_();
  if (!device_.is_cuda() || recording_graph() || !is_short()) return;
  try {
    graph_ = record_graph(device_, [&] {
      for (int run = 0; run < kRecorded; ++run) work_();
    });
    graph_->replay();  // the first launch uploads the graph to the device
  } catch (const OutOfMemoryError&) {
    graph_.reset();
  } catch (const std::exception& error) {  // reading the device while recording throws no DeviceError
    graph_.reset();
    log_warning(
        str("a choice on ", device_, " is timed as the host queues the work, which could not be recorded: ", error.what()));
  }
}

double DeviceClock::seconds() {
  if (!settled_) settle();
  if (!graph_) return seconds_on(device_, work_);
  return seconds_on(device_, [&] { graph_->replay(); }) / kRecorded;
}

std::size_t choose_on(Device device, const std::string& key, std::span<const std::string> names,
                      const std::function<void(std::size_t)>& run) {
  if (!decisions_active() || recording_graph()) return 0;
  std::vector<std::unique_ptr<DeviceClock>> clocks(names.size());
  return decide(key, names, [&](std::size_t i) {
    try {
      if (!clocks[i]) clocks[i] = std::make_unique<DeviceClock>(device, [&run, i] { run(i); });
      return clocks[i]->seconds();
    } catch (const OutOfMemoryError&) {
      if (i == 0) throw;
    } catch (const DeviceError& error) {
      if (i == 0) throw;
      log_warning(str(key, ": '", names[i], "' is not used: ", error.what()));
    }
    return std::numeric_limits<double>::infinity();
  });
}

}  // namespace tessera
