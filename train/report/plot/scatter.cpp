#include "train/report/plot/scatter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera {
namespace {

constexpr double kLeastSpan = 0.02;  // share of the greatest value, or of 1 if that is larger

Axis axis_of(double least, double greatest) {
  return Axis::over(least, greatest, std::max(std::abs(greatest), 1.0) * kLeastSpan);
}

Drawing empty_drawing(const Scatter& scatter) {
  double least_x = 0, greatest_x = 1, least_y = 0, greatest_y = 100;
  for (std::size_t i = 0; i < scatter.points.size(); ++i) {
    const ScatterPoint& point = scatter.points[i];
    least_x = i == 0 ? point.x.p10 : std::min(least_x, point.x.p10);
    greatest_x = i == 0 ? point.x.p90 : std::max(greatest_x, point.x.p90);
    least_y = i == 0 ? point.y - point.half : std::min(least_y, point.y - point.half);
    greatest_y = i == 0 ? point.y + point.half : std::max(greatest_y, point.y + point.half);
  }
  return Drawing(scatter.frame, axis_of(least_x, greatest_x), axis_of(least_y, greatest_y));
}

Place place_of(const Drawing& drawing, const ScatterPoint& point) {
  return {drawing.across(point.x.median), drawing.down(point.y)};
}

void draw_bars(Drawing& drawing, const ScatterPoint& point) {
  const Place at = place_of(drawing, point);
  if (point.half > 0) drawing.line({at.x, drawing.down(point.y - point.half)}, {at.x, drawing.down(point.y + point.half)}, "bar");
  if (point.x.p90 > point.x.p10) drawing.line({drawing.across(point.x.p10), at.y}, {drawing.across(point.x.p90), at.y}, "bar");
}

// From each point level, then upright to the next: between two points, nothing better than the first is known.
void draw_front(Drawing& drawing, const Scatter& scatter, bool more_is_better) {
  std::vector<Place> places;
  for (const std::size_t i : pareto_front(scatter.points, more_is_better)) {
    const Place at = place_of(drawing, scatter.points[i]);
    if (!places.empty()) places.push_back({at.x, places.back().y});
    places.push_back(at);
  }
  if (places.size() > 1) drawing.path(places, "front");
}

void draw_points(Drawing& drawing, const Scatter& scatter) {
  for (const ScatterPoint& point : scatter.points) drawing.marker(place_of(drawing, point), point.shape, point.kind);
  for (const ScatterPoint& point : scatter.points) drawing.name(place_of(drawing, point), point.name);
  if (!scatter.title.empty()) drawing.title(scatter.title);
  drawing.labels(scatter.x_label, scatter.y_label);
}

}  // namespace

std::vector<std::size_t> pareto_front(std::span<const ScatterPoint> points, bool more_is_better) {
  const auto better = [&](double value, double than) { return more_is_better ? value > than : value < than; };
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (points[a].x.median != points[b].x.median) return points[a].x.median < points[b].x.median;
    return better(points[a].y, points[b].y);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || better(points[i].y, points[front.back()].y)) front.push_back(i);
  }
  return front;
}

Drawing draw(const Scatter& scatter) {
  Drawing drawing = empty_drawing(scatter);
  drawing.grid();
  for (const ScatterPoint& point : scatter.points) draw_bars(drawing, point);
  draw_points(drawing, scatter);
  return drawing;
}

Drawing draw_with_front(const Scatter& scatter, bool more_is_better) {
  Drawing drawing = empty_drawing(scatter);
  drawing.grid();
  draw_front(drawing, scatter, more_is_better);
  for (const ScatterPoint& point : scatter.points) draw_bars(drawing, point);
  draw_points(drawing, scatter);
  return drawing;
}

}  // namespace tessera
