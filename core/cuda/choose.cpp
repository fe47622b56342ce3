#include "core/cuda/choose.h"

#include <limits>

#include "core/decisions.h"
#include "core/device_work.h"
#include "core/error.h"

namespace tessera::cuda {
namespace {

// In one measurement: the device starts on the second while the host still queues the first, as it does within a step.
constexpr int kRepeats = 8;

}  // namespace

std::size_t choose(Device device, const std::string& key, std::span<const std::string> names,
                   const std::function<void(std::size_t)>& run) {
  if (!decisions_active() || recording_graph()) return 0;
  return decide(key, names, [&](std::size_t i) {
    try {
      return seconds_on(device, [&] {
        for (int repeat = 0; repeat < kRepeats; ++repeat) run(i);
      });
    } catch (const OutOfMemoryError&) {
      if (i == 0) throw;
      return std::numeric_limits<double>::infinity();
    }
  });
}

}  // namespace tessera::cuda
