#include "train/report/html/curves.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/plot/drawing.h"
#include "train/report/plot/markup.h"

namespace tessera {
namespace {

constexpr double kWidth = 640;
constexpr double kPlotHeight = 220;  // height of the axes, without the text around them
constexpr double kLabelHeight = 15;
constexpr double kPowersFrom = 1000;  // ratio of greatest to least value from which an axis is logarithmic
constexpr std::size_t kMarked = 40;  // most points of a curve that has markers
constexpr std::size_t kIntervals = 400;
constexpr std::size_t kColours = 7;
constexpr std::size_t kDashes = 5;

struct Range {
  double least = 0;
  double greatest = 0;
  bool any = false;

  void add(double value) {
    least = any ? std::min(least, value) : value;
    greatest = any ? std::max(greatest, value) : value;
    any = true;
  }
};

// Appends an interval's least and greatest value in their order, after its first gap if it has one.
void add_interval(std::vector<CurvePoint>& out, const std::vector<CurvePoint>& points, std::size_t begin, std::size_t end) {
  const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = points.begin() + static_cast<std::ptrdiff_t>(end);
  const auto gap = std::find_if(first, last, [](const CurvePoint& point) { return !has_place(point.value); });
  if (gap != last) out.push_back(*gap);
  const auto below = [](const CurvePoint& a, const CurvePoint& b) {
    return has_place(a.value) && (!has_place(b.value) || a.value < b.value);
  };
  const auto above = [](const CurvePoint& a, const CurvePoint& b) {
    return has_place(a.value) && (!has_place(b.value) || a.value > b.value);
  };
  auto least = std::min_element(first, last, below);
  auto greatest = std::min_element(first, last, above);
  if (!has_place(least->value)) return;
  if (greatest < least) std::swap(least, greatest);
  out.push_back(*least);
  if (greatest != least) out.push_back(*greatest);
}

Axis value_axis(const Range& range) {
  if (range.least > 0 && range.greatest / range.least >= kPowersFrom) return Axis::by_powers(range.least, range.greatest);
  const double size = std::max(std::abs(range.least), std::abs(range.greatest));
  Axis axis = Axis::over(range.least, range.greatest, size > 0 ? size * 0.02 : 1.0);
  if (range.least >= 0) axis.low = std::max(axis.low, 0.0);  // an axis below 0 would suggest that the values can be negative
  return axis;
}

// The names of a run's stages above the axes. Each is in the first row in which it overlaps no other.
struct StageLabels {
  struct Label {
    std::string words;
    double x = 0;  // its middle
    std::size_t row = 0;
  };
  std::vector<Label> labels;
  std::vector<double> borders;  // steps
  std::size_t rows = 0;
};

StageLabels labels_of(const Curve& curve, const Range& steps, bool named) {
  StageLabels out;
  const Drawing drawing({.width = kWidth}, Axis::between(steps.least, steps.greatest), {});
  std::vector<double> ends;  // right end of the last label of each row
  double begin = steps.least;
  for (std::size_t i = 0; i < curve.stages.size(); ++i) {
    const double end = std::min(static_cast<double>(curve.stages[i].end), steps.greatest);
    if (static_cast<double>(curve.stages[i].end) < steps.least || begin > steps.greatest) continue;
    const std::string words = named ? str(curve.name, ": ", curve.stages[i].name) : curve.stages[i].name;
    const double half = width_of(words) / 2;
    const double x = std::clamp((drawing.across(begin) + drawing.across(std::max(begin, end))) / 2, half + 2,
                                std::max(kWidth - half - 2, half + 2));
    const auto free = std::ranges::find_if(ends, [&](double taken) { return x - half > taken + 8; });
    const auto row = static_cast<std::size_t>(free - ends.begin());
    if (free == ends.end()) ends.push_back(0);
    ends[row] = x + half;
    out.labels.push_back({words, x, row});
    if (i + 1 < curve.stages.size() && end < steps.greatest) out.borders.push_back(end);
    begin = std::max(begin, end);
  }
  out.rows = ends.size();
  return out;
}

// One set of labels for each different sequence of stages.
std::vector<StageLabels> all_labels(const CurveChart& chart, const Range& steps) {
  std::vector<std::size_t> different;
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const auto same = [&](std::size_t other) { return chart.curves[other].stages == chart.curves[i].stages; };
    if (!chart.curves[i].stages.empty() && std::ranges::none_of(different, same)) different.push_back(i);
  }
  std::vector<StageLabels> labels;
  for (const std::size_t i : different) labels.push_back(labels_of(chart.curves[i], steps, different.size() > 1));
  return labels;
}

void draw_labels(Drawing& drawing, const std::vector<StageLabels>& all) {
  double y = kLabelHeight;
  for (const StageLabels& labels : all) {
    for (const StageLabels::Label& label : labels.labels)
      drawing.text({label.x, y + kLabelHeight * static_cast<double>(label.row)}, label.words, "middle", " class=\"stage\"");
    for (const double step : labels.borders) {
      const DrawingFrame& frame = drawing.frame();
      drawing.line({drawing.across(step), frame.top}, {drawing.across(step), frame.height - frame.bottom}, "border");
    }
    y += kLabelHeight * static_cast<double>(labels.rows);
  }
}

void draw_curve(Drawing& drawing, const Curve& curve) {
  const std::string kind = series_class(curve.series);
  const std::vector<CurvePoint> points = thinned(curve.points);
  const bool marked = points.size() <= kMarked;
  std::vector<Place> piece;
  const auto end_piece = [&] {
    if (piece.size() > 1) drawing.path(piece, "curve " + kind);
    for (const Place& place : piece) {
      if (marked || piece.size() == 1) drawing.marker(place, curve.series, "mark " + kind);
    }
    piece.clear();
  };
  for (const CurvePoint& point : points) {
    if (has_place(point.value)) {
      piece.push_back({drawing.across(static_cast<double>(point.step)), drawing.down(point.value)});
    } else {
      end_piece();
    }
  }
  end_piece();
}

std::string description(const CurveChart& chart) {
  std::string text;
  for (const Curve& curve : chart.curves) {
    std::vector<CurvePoint> shown = curve.points;
    std::erase_if(shown, [](const CurvePoint& point) { return !has_place(point.value); });
    if (shown.empty()) continue;
    text += str(text.empty() ? "" : " ", curve.name, ": ", formatted("%.6g", shown.front().value), " at step ",
                shown.front().step, ", ", formatted("%.6g", shown.back().value), " at step ", shown.back().step);
    const std::size_t gaps = curve.points.size() - shown.size();
    text += gaps > 0 ? str("; ", gaps, " of ", curve.points.size(), " values are NaN or infinite.") : ".";
  }
  return text;
}

}  // namespace

std::string series_class(std::size_t series) { return str('c', series % kColours, " d", series % kDashes); }

std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points) {
  if (points.size() <= 2 * kIntervals) return points;
  std::vector<CurvePoint> out;
  for (std::size_t i = 0; i < kIntervals; ++i)
    add_interval(out, points, points.size() * i / kIntervals, points.size() * (i + 1) / kIntervals);
  return out;
}

std::string curves_html(const CurveChart& chart) {
  Range steps, values;
  for (const Curve& curve : chart.curves) {
    for (const CurvePoint& point : curve.points) {
      if (!has_place(point.value)) continue;
      steps.add(static_cast<double>(point.step));
      values.add(point.value);
    }
  }
  if (chart.steps) {
    steps.add(static_cast<double>(chart.steps->first));
    steps.add(static_cast<double>(chart.steps->second));
  }
  const std::string title = chart.unit.empty() ? chart.title : str(chart.title, ", ", chart.unit);
  if (!values.any) return str("<p>", escaped(title), ": all values are NaN or infinite.</p>\n");
  const std::vector<StageLabels> labels = all_labels(chart, steps);
  std::size_t rows = 0;
  for (const StageLabels& each : labels) rows += each.rows;
  DrawingFrame frame{.width = kWidth, .top = 12 + kLabelHeight * static_cast<double>(rows), .bottom = 46};
  frame.height = frame.top + kPlotHeight + frame.bottom;
  const Axis axis = value_axis(values);
  Drawing drawing(frame, Axis::between(steps.least, steps.greatest), axis);
  drawing.grid();
  draw_labels(drawing, labels);
  for (const Curve& curve : chart.curves) draw_curve(drawing, curve);
  drawing.text({(frame.left + frame.width - frame.right) / 2, frame.height - 8}, "step", "middle");
  return str("<figure>\n<figcaption>", escaped(title), axis.logarithmic ? " (powers of ten)" : "", "</figcaption>\n",
             scroll_frame(title, drawing.in_page(chart.id, title, description(chart))), "</figure>\n");
}

}  // namespace tessera
