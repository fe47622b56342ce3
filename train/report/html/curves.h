// Numbers over the steps of runs, overlaid, with the borders of their stages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

struct CurvePoint {
  std::int64_t step = 0;
  double value = 0;  // NaN and the infinities are gaps
};

// A stage's part of the steps: from the one before it ended, to `end`.
struct StageSpan {
  std::string name;
  std::int64_t end = 0;

  friend bool operator==(const StageSpan&, const StageSpan&) = default;
};

struct Curve {
  std::string name;  // the run's
  std::size_t series = 0;  // which of the page's colours, dashes and markers
  std::vector<CurvePoint> points;
  std::vector<StageSpan> stages;  // of the run, in order
};

struct CurveChart {
  std::string id;  // in the page
  std::string title;
  std::string unit = {};  // behind the title; empty without one
  std::vector<Curve> curves{};
  std::optional<std::pair<std::int64_t, std::int64_t>> steps{};  // the axis covers at least these
};

// CSS: the colour and the dash of a series, together different for 35 of them.
std::string series_class(std::size_t series);

// Where there are more points than a screen has columns: each interval's least and greatest, and the gaps.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points);

// The value axis is logarithmic if all values are above 0 and span a factor of a thousand or more. A point with a gap on both
// sides is a dot; a curve of few points has a marker at each. Without a value to show, a sentence in place of an SVG.
std::string curves_html(const CurveChart& chart);

}  // namespace tessera
