#include "train/run/stage_preparation.h"

#include <utility>

#include "compress/report.h"
#include "core/support/error.h"
#include "train/checkpoint/kill_point.h"
#include "train/run/failure_advice.h"

namespace tessera {
namespace {

std::vector<PassReport> run_passes(RunContext& run) {
  std::string timed;  // key of the pass whose veto is timing, "" at other times: only timings can use a smaller batch
  std::string last;  // the last key that was timed
  std::string told;
  const auto before_timing = [&](const std::string& key, const std::string& what) {
    timed = last = key;
    if (run.options.stop.requested()) throw Stopped();
    if (std::exchange(told, what) == what) return;  // one layer with several ranks is timed several times
    run.progress.line(str(run.stage().name, ": timing ", what, " dense and compressed"));
  };
  const auto after_timing = [&] { timed.clear(); };
  try {
    const bool passes = has_passes(run.stage()) && !run.state.position().stage_ready;
    if (passes && run.options.stop.requested()) throw Stopped();
    TimingHooks hooks{.before = before_timing, .after = after_timing};
    if (run.leader.shares_timings()) {
      hooks.share = [&](auto&&... arguments) {
        try {
          run.leader.time_layers(arguments...);
        } catch (const OutOfMemoryError&) {
          timed = last;  // also if another rank ran out of memory
          throw;
        }
      };
    }
    return run.state.prepare_stage(hooks);
  } catch (const OutOfMemoryError& error) {
    if (timed.empty()) throw;
    const std::string smaller = str("stages[", run.state.position().stage, "].", timed, ".keep_for.batch=1");
    throw OutOfMemoryError(error.what() + way_on(run, smaller));
  }
}

}  // namespace

void prepare_stage(RunContext& run) {
  const std::vector<PassReport> reports = run_passes(run);
  if (reports.empty()) return;
  for (const PassReport& report : reports) kill_point(report.pass, run.state.position().stage);
  run.records->history().of(run.stage().name).passes = reports;
  run.records->write_layers();
  for (const PassReport& report : reports) run.progress.line(str(run.stage().name, ": ", summary(report)));
}

}  // namespace tessera
