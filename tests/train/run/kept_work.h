// A recording on the host, for tests of who records and replays.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "core/device/device_work.h"

namespace tessera {

// Keeps the work, as a device keeps kernels: nothing is computed before a replay.
class KeptWork final : public DeviceGraph {
 public:
  explicit KeptWork(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }
  std::size_t kernels() const override { return 1; }

 private:
  std::function<void()> work_;
};

}  // namespace tessera
