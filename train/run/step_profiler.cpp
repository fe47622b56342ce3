#include "train/run/step_profiler.h"

#include "core/cpu/fma_peak.h"
#include "core/cpu/stream_peak.h"
#include "core/support/error.h"

namespace tessera {

MachinePeaks measure_peaks(int threads) { return {threads, cpu::fma_peak_gflops(threads), cpu::stream_peak_gbytes(threads)}; }

void check_profiled(Device device) {
  TESSERA_CHECK(
      device.is_cpu(), ConfigError, "--profile: the device is ", device,
      ", whose kernels run behind the host's clock; use nsys profile --trace=cuda,nvtx tessera ..., where ranges are named "
      "after ops, or device=cpu");
}

StepProfiler::StepProfiler(std::int64_t steps, const MachinePeaks& peaks) : asked_(steps), peaks_(peaks) {}

void StepProfiler::step(const std::function<void()>& take) {
  if (warm_ < kWarmUp) {
    ++warm_;
    return take();
  }
  if (!step_ns_.empty()) between_ns_.push_back(Profile::steady_clock() - ended_ns_);
  const std::int64_t before = profile_.wall_ns();
  {
    const ProfileScope scope(profile_);
    take();
  }
  step_ns_.push_back(profile_.wall_ns() - before);
  ended_ns_ = Profile::steady_clock();
}

ProfileReport StepProfiler::report() const {
  ProfileReport report;
  report.peaks = peaks_;
  report.step_ns = step_ns_;
  report.between_ns = between_ns_;
  report.rows = profile_.rows();
  return report;
}

}  // namespace tessera
