// Takes the profile of training steps of one stage, after a few that warm up: the first one of a shape builds and times
// algorithms.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/device.h"
#include "core/support/profile.h"
#include "train/run/profile_report.h"

namespace tessera {

// The CPU's peaks. Takes about a second, and wants the machine to itself.
MachinePeaks measure_peaks(int threads);

// Throws ConfigError, naming a tool for it, unless the device is the CPU: the profile's clock is the host's, and a GPU's kernels
// run after the calls that it would time.
void check_profiled(Device device);

class StepProfiler {
 public:
  static constexpr std::int64_t kWarmUp = 3;  // steps

  StepProfiler(std::int64_t steps, const MachinePeaks& peaks);

  void begin_stage() noexcept { warm_ = 0; }
  void step(const std::function<void()>& take);  // not to be called once complete

  std::int64_t steps() const noexcept { return static_cast<std::int64_t>(step_ns_.size()); }  // in the profile so far
  bool complete() const noexcept { return steps() == asked_; }
  // Steps, rows and peaks; the caller knows the rest. Needs a step.
  ProfileReport report() const;

 private:
  std::int64_t asked_;
  MachinePeaks peaks_;
  std::int64_t warm_ = 0;
  std::int64_t ended_ns_ = 0;
  std::vector<std::int64_t> step_ns_;
  std::vector<std::int64_t> between_ns_;
  Profile profile_;
};

}  // namespace tessera
