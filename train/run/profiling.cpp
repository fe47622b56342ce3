#include "train/run/profiling.h"

#include "core/support/log.h"
#include "train/run/environment.h"

namespace tessera {

Profiling::Profiling(RunContext& run) : run_(run) {
  if (run.options.profile_steps == 0) return;
  check_profiled(run.state.device());
  const auto threads = static_cast<int>(resolve_compute_threads(run.config().threads.compute));
  profiler_ = std::make_unique<StepProfiler>(run.options.profile_steps, measure_peaks(threads));
}

void Profiling::begin_stage() {
  if (profiler_) profiler_->begin_stage();
}

void Profiling::take_step() {
  if (!profiler_) return run_.state.step();
  profiler_->step([&] { run_.state.step(); });
  if (profiler_->complete()) write();
}

void Profiling::end_stage() { write(); }

void Profiling::tell_missing(std::int64_t first_step) {
  if (!profiler_) return;
  const bool none_taken = run_.state.position().global_step == first_step;
  run_.progress.line(none_taken ? "profile: none; no step was left to take"
                                : str("profile: none; the first ", StepProfiler::kWarmUp, " steps of a stage warm up"));
}

void Profiling::write() {
  if (!profiler_ || profiler_->steps() == 0) return;
  ProfileReport report = profiler_->report();
  profiler_.reset();
  report.stage = run_.stage().name;
  report.last_step = run_.state.position().global_step;
  report.batch = run_.config().data.batch;
  report.units_per_sample = run_.state.task().units_per_sample(*run_.state.data().train.dataset);
  report.throughput_unit = run_.state.task().throughput_unit();
  report.processor = describe_environment(run_.config()).at("processor").as_string();
  write_file_atomically(run_.vfs, run_.folder.profile_data(), to_json(to_value(report), 2) + "\n");
  write_file_atomically(run_.vfs, run_.folder.profile(), to_markdown(report));
  run_.progress.line(str(to_text(report), "\nprofile: ", run_.folder.profile(), " and profile.json"));
}

}  // namespace tessera
