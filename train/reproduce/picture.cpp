#include "train/reproduce/picture.h"

#include <algorithm>
#include <vector>

#include "core/support/log.h"
#include "core/support/text.h"
#include "train/report/plot/scatter.h"

namespace tessera {
namespace {

// The row's time of the last inference batch; null before it was timed.
const ArmTime* shown_time(const TableView& view, const ArmRow& row) {
  const std::size_t last = view.file.latency.batch.size() - 1;
  return last < row.times.size() && row.times[last] ? &*row.times[last] : nullptr;
}

std::vector<ScatterPoint> points_of(const TableView& view, bool timed) {
  std::vector<ScatterPoint> points;
  for (const ArmRow& row : view.rows) {
    if (row.cells.empty()) continue;
    const std::vector<double> tests = row.tests();
    const double seconds = row.train_seconds();
    points.push_back({.name = row.arm,
                      .x = timed ? shown_time(view, row)->time : Summary{.median = seconds, .p10 = seconds, .p90 = seconds},
                      .y = in_unit(*view.metric, mean_of(tests)),
                      .half = in_unit(*view.metric, reported_deviation(tests).value_or(0)),
                      .kind = row.arm == view.file.baseline_arm() ? "baseline" : "arm"});
  }
  return points;
}

}  // namespace

std::string to_svg(const TableView& view) {
  const bool timed =
      std::ranges::all_of(view.rows, [&](const ArmRow& row) { return row.cells.empty() || shown_time(view, row) != nullptr; });
  const bool percent = view.metric->unit == Metric::Unit::fraction;
  const Scatter scatter{
      .title = str(view.file.name, ": ", view.metric->key, " against ", timed ? "measured time" : "training time"),
      .x_label = timed ? str("milliseconds of a batch of ", view.file.latency.batch.back(), " (median, p10 to p90)",
                             view.timed_on.empty() ? "" : ", ", view.timed_on)
                       : "training, seconds",
      .y_label = str("test ", view.metric->heading, percent ? ", %" : "", " (mean, standard deviation)"),
      .points = points_of(view, timed)};
  return draw(scatter).alone(scatter.title);
}

}  // namespace tessera
