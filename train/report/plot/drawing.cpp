#include "train/report/plot/drawing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/plot/markup.h"

namespace tessera {
namespace {

constexpr double kLineHeight = 15;
constexpr double kCharacter = 7.2;  // approximate width of one character

// Closed outlines around (0, 0). The circle has none, because it is an SVG element.
constexpr std::array<std::string_view, kShapes> kOutlines{"", "M-4.5 -4.5H4.5V4.5H-4.5Z", "M0 -5.5L5.5 4.5H-5.5Z",
                                                          "M0 -6L6 0L0 6L-6 0Z",
                                                          "M-1.7 -5.5H1.7V-1.7H5.5V1.7H1.7V5.5H-1.7V1.7H-5.5V-1.7H-1.7Z"};

}  // namespace

double width_of(std::string_view words) { return kCharacter * static_cast<double>(text_width(words)); }

std::string pixels(double value) { return formatted("%.1f", value); }

std::string svg_in_page(double width, double height, const std::string& id, const std::string& title,
                        const std::string& description, const std::string& body) {
  return str("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, ' ', height, "\" role=\"img\" aria-labelledby=\"",
             id, "-title ", id, "-desc\">\n<title id=\"", id, "-title\">", escaped(title), "</title>\n<desc id=\"", id,
             "-desc\">", escaped(description), "</desc>\n", body, "</svg>\n");
}

void Drawing::grid() {
  const double floor = frame_.height - frame_.bottom;
  for (const Tick& tick : x_.ticks()) {
    line({across(tick.value), frame_.top}, {across(tick.value), floor}, "grid");
    text({across(tick.value), floor + 18}, tick.text, "middle");
  }
  for (const Tick& tick : y_.ticks()) {
    line({frame_.left, down(tick.value)}, {frame_.width - frame_.right, down(tick.value)}, "grid");
    text({frame_.left - 8, down(tick.value) + 4}, tick.text, "end");
  }
}

void Drawing::line(Place from, Place to, std::string_view kind) {
  body_ += str("<line class=\"", kind, "\" x1=\"", pixels(from.x), "\" y1=\"", pixels(from.y), "\" x2=\"", pixels(to.x),
               "\" y2=\"", pixels(to.y), "\"/>\n");
}

void Drawing::path(std::span<const Place> places, std::string_view kind) {
  body_ += str("<polyline class=\"", kind, "\" points=\"");
  for (std::size_t i = 0; i < places.size(); ++i) body_ += str(i == 0 ? "" : " ", pixels(places[i].x), ',', pixels(places[i].y));
  body_ += "\"/>\n";
}

void Drawing::marker(Place place, std::size_t shape, std::string_view kind) {
  if (shape % kShapes == 0) {
    body_ += str("<circle class=\"", kind, "\" cx=\"", pixels(place.x), "\" cy=\"", pixels(place.y), "\" r=\"5\"/>\n");
  } else {
    body_ += str("<path class=\"", kind, "\" transform=\"translate(", pixels(place.x), ' ', pixels(place.y), ")\" d=\"",
                 kOutlines[shape % kShapes], "\"/>\n");
  }
}

void Drawing::text(Place place, std::string_view words, std::string_view anchor, std::string_view attributes) {
  body_ += str("<text x=\"", pixels(place.x), "\" y=\"", pixels(place.y), "\" text-anchor=\"", anchor, "\"", attributes, ">",
               escaped(words), "</text>\n");
}

void Drawing::title(const std::string& words) { text({frame_.left, 24}, words, "start", " font-weight=\"bold\""); }

void Drawing::labels(const std::string& x, const std::string& y) {
  text({(frame_.left + frame_.width - frame_.right) / 2, frame_.height - 16}, x, "middle");
  const double middle = (frame_.top + frame_.height - frame_.bottom) / 2;
  text({18, middle}, y, "middle", formatted(" transform=\"rotate(-90 18 %.1f)\"", middle));
}

void Drawing::name(Place place, const std::string& words) {
  const double width = width_of(words);
  const bool left = place.x + 10 + width > frame_.width - frame_.right;
  const double from = left ? place.x - 10 - width : place.x + 10;
  const double wanted = place.y - 6;  // above a horizontal bar
  double y = wanted;
  for (int attempt = 1; taken(from, width, y) && attempt < 20; ++attempt) {
    y = wanted + (attempt % 2 == 1 ? 1 : -1) * std::ceil(attempt / 2.0) * kLineHeight;
  }
  if (std::abs(y - wanted) > 1) line(place, {left ? from + width : from, y - 4}, "lead");
  names_.push_back({from, width, y});
  text({from, y}, words, "start");
}

bool Drawing::taken(double x, double width, double y) const {
  return std::ranges::any_of(names_, [&](const Box& box) {
    return x < box.x + box.width && box.x < x + width && std::abs(y - box.y) < kLineHeight - 1;
  });
}

std::string Drawing::alone(const std::string& title) const {
  return str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", frame_.width, "\" height=\"", frame_.height,
             "\" viewBox=\"0 0 ", frame_.width, ' ', frame_.height, "\" role=\"img\">\n<title>", escaped(title),
             "</title>\n<style>text { font: 13px sans-serif; fill: #222; stroke: #fff; stroke-width: 3; paint-order: stroke } "
             ".grid { stroke: #ddd } "
             ".bar { stroke: #bbb; stroke-width: 2 } .lead { stroke: #bbb } .arm { fill: #1f6fb4 } .baseline { fill: #c1440e "
             "}</style>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
             body_, "</svg>\n");
}

std::string Drawing::in_page(const std::string& id, const std::string& title, const std::string& description) const {
  return svg_in_page(frame_.width, frame_.height, id, title, description, body_);
}

}  // namespace tessera
