// A number for a network against its measured time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compress/timing/summary.h"
#include "train/report/plot/drawing.h"

namespace tessera {

struct ScatterPoint {
  std::string name;
  Summary x = {};  // ends of the level bar: the tenth and ninetieth percentile
  double y = 0;  // in the unit that people read
  double half = 0;  // of the upright bar: the standard deviation; 0 with too few runs for one
  std::string kind = "arm";  // CSS class
  std::size_t shape = 0;
};

struct Scatter {
  DrawingFrame frame{};
  std::string title{};  // above the axes; empty where it stands elsewhere
  std::string x_label{};
  std::string y_label{};
  std::vector<ScatterPoint> points{};
};

// The indices of the points that are better than every faster one, by rising time. Points of equal time: only the best is kept;
// of equal points the first.
std::vector<std::size_t> pareto_front(std::span<const ScatterPoint> points, bool more_is_better);

// Axes alone where there is no point.
Drawing draw(const Scatter& scatter);
// The same with a line through the Pareto front.
Drawing draw_with_front(const Scatter& scatter, bool more_is_better);

}  // namespace tessera
