// The passes of a session's stages.
#include "compress/report.h"
#include "core/support/error.h"
#include "train/run/kill_point.h"
#include "train/run/session.h"

namespace tessera {

void Session::prepare_stage() {
  const std::optional<PassReport> report = run_passes();
  if (!report) return;
  kill_point("factorise", state_.position().stage);
  records_->history().of(stage().name).factorise = *report;
  records_->write_layers();
  progress_.line(str(stage().name, ": ", summary(*report)));
}

std::optional<PassReport> Session::run_passes() {
  const auto before_timing = [&](const std::string& what) {
    if (options_.stop.requested()) throw Stopped();
    progress_.line(str(stage().name, ": timing ", what, " dense and factored"));
  };
  try {
    const bool passes = stage().factorise && !state_.position().stage_ready;
    if (passes && options_.stop.requested()) throw Stopped();
    return state_.prepare_stage(before_timing);
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(error.what() + way_on(str("stages[", state_.position().stage, "].factorise.keep_for.batch=1")));
  }
}

}  // namespace tessera
