// The passes of a session's stages.
#include "compress/report.h"
#include "core/support/error.h"
#include "train/run/kill_point.h"
#include "train/run/session.h"

namespace tessera {

void Session::prepare_stage() {
  const std::vector<PassReport> reports = run_passes();
  if (reports.empty()) return;
  for (const PassReport& report : reports) kill_point(report.pass, state_.position().stage);
  records_->history().of(stage().name).passes = reports;
  records_->write_layers();
  for (const PassReport& report : reports) progress_.line(str(stage().name, ": ", summary(report)));
}

std::vector<PassReport> Session::run_passes() {
  std::string timed;  // key of the pass while its veto times, "" at other times: no smaller batch helps those
  const auto before_timing = [&](const std::string& key, const std::string& what) {
    timed = key;
    if (options_.stop.requested()) throw Stopped();
    progress_.line(str(stage().name, ": timing ", what, " dense and compressed"));
  };
  const auto after_timing = [&] { timed.clear(); };
  try {
    const bool passes = has_passes(stage()) && !state_.position().stage_ready;
    if (passes && options_.stop.requested()) throw Stopped();
    return state_.prepare_stage({.before = before_timing, .after = after_timing});
  } catch (const OutOfMemoryError& error) {
    if (timed.empty()) throw;
    throw OutOfMemoryError(error.what() + way_on(str("stages[", state_.position().stage, "].", timed, ".keep_for.batch=1")));
  }
}

}  // namespace tessera
