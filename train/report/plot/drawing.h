// Lines, marks and words between two axes, as an SVG: one that needs nothing beside itself, or one of an HTML page, whose style
// sheet gives it its colours.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/report/plot/axis.h"

namespace tessera {

struct DrawingFrame {  // in pixels: the whole, and what stays free around the axes
  double width = 760;
  double height = 460;
  double left = 70;
  double right = 30;
  double top = 46;
  double bottom = 60;
};

struct Place {  // in pixels
  double x = 0;
  double y = 0;
};

inline constexpr std::size_t kShapes = 5;  // circle, square, triangle, diamond, cross

// The width of the words in pixels, about: the library has no fonts.
double width_of(std::string_view words);

// A coordinate as the text of an SVG attribute: "0.0".
std::string pixels(double value);

// <svg> of this size with a title and a description that screen readers tell. `id` is unique in its page.
std::string svg_in_page(double width, double height, const std::string& id, const std::string& title,
                        const std::string& description, const std::string& body);

class Drawing {
 public:
  Drawing(const DrawingFrame& frame, const Axis& x, const Axis& y) : frame_(frame), x_(x), y_(y) {}

  const DrawingFrame& frame() const { return frame_; }
  double across(double value) const { return frame_.left + x_.share(value) * (frame_.width - frame_.left - frame_.right); }
  double down(double value) const {
    return frame_.height - frame_.bottom - y_.share(value) * (frame_.height - frame_.top - frame_.bottom);
  }

  // `kind` is the CSS class.
  void grid();
  void line(Place from, Place to, std::string_view kind);
  void path(std::span<const Place> places, std::string_view kind);  // from each to the next
  void marker(Place place, std::size_t shape, std::string_view kind);
  void text(Place place, std::string_view words, std::string_view anchor, std::string_view attributes = "");
  void title(const std::string& words);  // above the axes
  void labels(const std::string& x, const std::string& y);  // of the axes
  // Beside a place, moved up or down until it covers no other name.
  void name(Place place, const std::string& words);

  std::string alone(const std::string& title) const;
  std::string in_page(const std::string& id, const std::string& title, const std::string& description) const;

 private:
  struct Box {
    double x, width, y;
  };

  bool taken(double x, double width, double y) const;

  DrawingFrame frame_;
  Axis x_;
  Axis y_;
  std::vector<Box> names_;
  std::string body_;
};

}  // namespace tessera
