// A session's steps under `--profile`.
#include "core/support/error.h"
#include "train/run/environment.h"
#include "train/run/session.h"

namespace tessera {

void Session::take_step() {
  if (!profiler_) return state_.step();
  profiler_->step([&] { state_.step(); });
  if (profiler_->complete()) write_profile();
}

void Session::tell_missing_profile(std::int64_t first_step) {
  if (!profiler_) return;
  const bool none_taken = state_.position().global_step == first_step;
  progress_.line(none_taken ? "profile: none; no step was left to take"
                            : str("profile: none; the first ", StepProfiler::kWarmUp, " steps of a stage warm up"));
}

void Session::write_profile() {
  if (!profiler_ || profiler_->steps() == 0) return;
  ProfileReport report = profiler_->report();
  profiler_.reset();
  report.stage = stage().name;
  report.last_step = state_.position().global_step;
  report.batch = config().data.batch;
  report.processor = describe_environment(config()).at("processor").as_string();
  write_file_atomically(vfs_, folder_.profile_data(), to_json(to_value(report), 2) + "\n");
  write_file_atomically(vfs_, folder_.profile(), to_markdown(report));
  progress_.line(str(to_text(report), "\nprofile: ", folder_.profile(), " and profile.json"));
}

}  // namespace tessera
