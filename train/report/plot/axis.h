// The axis of a plot: from a round number to a round number, in round steps, or by powers of ten.
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct Tick {
  double value = 0;
  std::string text;
};

// Whether a value has a place on an axis. NaN, the infinities and values that a sum of squares would overflow with have none.
bool has_place(double value);

struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;
  bool logarithmic = false;  // between powers of ten; `step` says nothing then

  // Both values have a place, and least <= greatest. A span below `least_span`, which is above 0, counts as `least_span`. A
  // share `padding` of the span stays free at both ends.
  static Axis over(double least, double greatest, double least_span, double padding = 0.1);
  // From `least` to `greatest`, whole numbers, without room at the ends; the ticks are at round numbers.
  static Axis between(double least, double greatest);
  // A logarithmic axis from a power of ten to another; both values are above 0.
  static Axis by_powers(double least, double greatest);

  double share(double value) const;  // 0 at the low end, 1 at the high one
  std::vector<Tick> ticks() const;
};

}  // namespace tessera
