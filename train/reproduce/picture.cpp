#include "train/reproduce/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/support/log.h"
#include "core/support/text.h"

namespace tessera {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 460;
constexpr double kLeft = 70;
constexpr double kRight = 30;
constexpr double kTop = 46;
constexpr double kBottom = 60;
constexpr double kLineHeight = 15;
constexpr double kCharacter = 7.2;  // width of one, about

struct Point {
  std::string name;
  Summary x = {};  // ends of the level bar: the tenth and ninetieth percentile
  double y = 0;  // in the unit that people read
  double half = 0;  // of the upright bar: the standard deviation, 0 of fewer runs than tell one
  bool baseline = false;
};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

// An axis from a round number to a round number, in round steps.
struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;

  static Axis over(double least, double greatest) {
    const double span = std::max(greatest - least, std::max(std::abs(greatest), 1.0) * 0.02);
    const double raw = span / 5;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    Axis axis;
    for (const double multiple : {1.0, 2.0, 5.0, 10.0}) {
      axis.step = multiple * power;
      if (axis.step >= raw) break;
    }
    axis.low = std::floor((least - 0.1 * span) / axis.step) * axis.step;
    axis.high = std::ceil((greatest + 0.1 * span) / axis.step) * axis.step;
    return axis;
  }
  double share(double value) const { return (value - low) / (high - low); }
};

// Of the last batch of inference; null before it was timed.
const ArmTime* shown_time(const TableView& view, const ArmRow& row) {
  const std::size_t last = view.file.latency.batch.size() - 1;
  return last < row.times.size() && row.times[last] ? &*row.times[last] : nullptr;
}

std::vector<Point> points_of(const TableView& view, bool timed) {
  std::vector<Point> points;
  for (const ArmRow& row : view.rows) {
    if (row.cells.empty()) continue;
    const std::vector<double> tests = row.tests();
    const double seconds = row.train_seconds();
    points.push_back({.name = row.arm,
                      .x = timed ? shown_time(view, row)->time : Summary{.median = seconds, .p10 = seconds, .p90 = seconds},
                      .y = in_unit(*view.metric, mean_of(tests)),
                      .half = tests.size() < kRunsForDeviation ? 0 : in_unit(*view.metric, sample_stddev(tests)),
                      .baseline = row.arm == view.file.baseline_arm()});
  }
  return points;
}

class Drawing {
 public:
  Drawing(Axis x, Axis y) : x_(x), y_(y) {}

  double across(double value) const { return kLeft + x_.share(value) * (kWidth - kLeft - kRight); }
  double down(double value) const { return kHeight - kBottom - y_.share(value) * (kHeight - kTop - kBottom); }

  void grid() {
    for (double tick = x_.low; tick <= x_.high + x_.step / 2; tick += x_.step) {
      line(across(tick), kTop, across(tick), kHeight - kBottom, "grid");
      text(across(tick), kHeight - kBottom + 18, formatted("%.6g", rounded(tick, x_.step)), "middle");
    }
    for (double tick = y_.low; tick <= y_.high + y_.step / 2; tick += y_.step) {
      line(kLeft, down(tick), kWidth - kRight, down(tick), "grid");
      text(kLeft - 8, down(tick) + 4, formatted("%.6g", rounded(tick, y_.step)), "end");
    }
  }

  void bars(const Point& point) {
    const double cx = across(point.x.median);
    if (point.half > 0) line(cx, down(point.y - point.half), cx, down(point.y + point.half), "bar");
    if (point.x.p90 > point.x.p10) line(across(point.x.p10), down(point.y), across(point.x.p90), down(point.y), "bar");
  }

  void point(const Point& point) {
    const double cx = across(point.x.median);
    body_ += str("<circle class=\"", point.baseline ? "baseline" : "arm", "\" cx=\"", number(cx), "\" cy=\"",
                 number(down(point.y)), "\" r=\"5\"/>\n");
  }

  // Beside its point, moved up or down until it covers no other name.
  void name(const Point& point) {
    const double width = kCharacter * static_cast<double>(text_width(point.name));
    const double cx = across(point.x.median);
    const bool left = cx + 10 + width > kWidth - kRight;
    const double from = left ? cx - 10 - width : cx + 10;
    const double wanted = down(point.y) - 6;  // above the level bar
    double y = wanted;
    for (int attempt = 1; taken(from, width, y) && attempt < 20; ++attempt) {
      y = wanted + (attempt % 2 == 1 ? 1 : -1) * std::ceil(attempt / 2.0) * kLineHeight;
    }
    if (std::abs(y - wanted) > 1) line(cx, down(point.y), left ? from + width : from, y - 4, "lead");
    names_.push_back({from, width, y});
    text(from, y, point.name, "start");
  }

  void text(double x, double y, const std::string& words, const char* anchor, const char* extra = "") {
    body_ += str("<text x=\"", number(x), "\" y=\"", number(y), "\" text-anchor=\"", anchor, "\"", extra, ">", escaped(words),
                 "</text>\n");
  }

  std::string svg(const std::string& title) const {
    return str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", kHeight, "\" viewBox=\"0 0 ", kWidth,
               ' ', kHeight, "\" role=\"img\">\n<title>", escaped(title),
               "</title>\n<style>text { font: 13px sans-serif; fill: #222; stroke: #fff; stroke-width: 3; paint-order: stroke } "
               ".grid { stroke: #ddd } "
               ".bar { stroke: #bbb; stroke-width: 2 } .lead { stroke: #bbb } .arm { fill: #1f6fb4 } .baseline { fill: #c1440e "
               "}</style>\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
               body_, "</svg>\n");
  }

 private:
  struct Box {
    double x, width, y;
  };

  static double rounded(double value, double step) { return std::round(value / step) * step; }
  static std::string number(double value) { return formatted("%.1f", value); }

  bool taken(double x, double width, double y) const {
    return std::ranges::any_of(names_, [&](const Box& box) {
      return x < box.x + box.width && box.x < x + width && std::abs(y - box.y) < kLineHeight - 1;
    });
  }

  void line(double x1, double y1, double x2, double y2, const char* kind) {
    body_ += str("<line class=\"", kind, "\" x1=\"", number(x1), "\" y1=\"", number(y1), "\" x2=\"", number(x2), "\" y2=\"",
                 number(y2), "\"/>\n");
  }

  Axis x_;
  Axis y_;
  std::vector<Box> names_;
  std::string body_;
};

}  // namespace

std::string to_svg(const TableView& view) {
  const bool timed =
      std::ranges::all_of(view.rows, [&](const ArmRow& row) { return row.cells.empty() || shown_time(view, row) != nullptr; });
  const std::vector<Point> points = points_of(view, timed);
  double least_x = 0, greatest_x = 1, least_y = 0, greatest_y = 100;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& point = points[i];
    least_x = i == 0 ? point.x.p10 : std::min(least_x, point.x.p10);
    greatest_x = i == 0 ? point.x.p90 : std::max(greatest_x, point.x.p90);
    least_y = i == 0 ? point.y - point.half : std::min(least_y, point.y - point.half);
    greatest_y = i == 0 ? point.y + point.half : std::max(greatest_y, point.y + point.half);
  }
  Drawing drawing(Axis::over(least_x, greatest_x), Axis::over(least_y, greatest_y));
  drawing.grid();
  for (const Point& point : points) drawing.bars(point);
  for (const Point& point : points) drawing.point(point);
  for (const Point& point : points) drawing.name(point);
  const std::string title = str(view.file.name, ": ", view.metric->key, " against ", timed ? "measured time" : "training time");
  drawing.text(kLeft, 24, title, "start", " font-weight=\"bold\"");
  const std::string across = timed ? str("milliseconds of a batch of ", view.file.latency.batch.back(), " (median, p10 to p90)",
                                         view.timed_on.empty() ? "" : ", ", view.timed_on)
                                   : "training, seconds";
  drawing.text((kLeft + kWidth - kRight) / 2, kHeight - 16, across, "middle");
  const bool percent = view.metric->unit == Metric::Unit::fraction;
  const std::string turn = formatted(" transform=\"rotate(-90 18 %.1f)\"", (kTop + kHeight - kBottom) / 2);
  drawing.text(18, (kTop + kHeight - kBottom) / 2,
               str("test ", view.metric->heading, percent ? ", %" : "", " (mean, standard deviation)"), "middle", turn.c_str());
  return drawing.svg(title);
}

}  // namespace tessera
