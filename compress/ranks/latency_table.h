// Time of a compressed layer by its ranks: some points of the grid of ranks are timed, and the times of the others are
// interpolated.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/ranks/rank_select.h"
#include "compress/timing/veto.h"

namespace tessera {

// A layer that ranks are chosen for, in the network.
struct TimedLayer {
  RankLayer layer;
  Shape input;  // its own; the batch is not read
  bool first = false;  // as Veto::judge() says
};

// What the layer in this form takes beside its dense self. Refers to the dense layer.
RankTiming rank_timing(const TimedLayer& timed, Ranks ranks);

class LatencyTable {
 public:
  static constexpr std::size_t kPoints = 24;  // timed at most, beside the dense layer

  // A form with one or two ranks is timed on a grid, with a level for the full rank, whose factor is missing; one with more on
  // the line of equal shares of the largest ranks. Throws what Veto::rank_speed() throws.
  LatencyTable(const TimedLayer& timed, std::int64_t multiple_of, const Veto& veto);
  // The ranks that such a table times, in their order.
  static std::vector<Ranks> timed_ranks(const TimedLayer& timed, std::int64_t multiple_of);

  double dense_ms() const { return dense_ms_; }
  // Linear between the nearest points, in each rank; on a line in the MACs.
  double ms(const Ranks& ranks) const;
  std::size_t points() const { return timed_; }

 private:
  // Levels of one rank, ascending; the last is the largest rank.
  using Levels = std::vector<std::int64_t>;
  struct Point {
    Ranks ranks;
    double macs = 0;  // over those of the dense layer
    // A point with the dense layer's MACs or more cannot pay, and is not timed. To interpolate beside it, its time is taken from
    // its MACs.
    bool timed = true;
  };
  static std::vector<Levels> levels_of(const TimedLayer& timed, std::int64_t multiple_of);
  static std::vector<Point> grid_of(const TimedLayer& timed, const std::vector<Levels>& levels);
  static std::vector<Point> line_of(const TimedLayer& timed, std::int64_t multiple_of);
  double time_of(const TimedLayer& timed, const Ranks& ranks, const Veto& veto);

  std::vector<Levels> levels_;  // of a grid, one for each rank
  std::vector<double> ms_;  // of a grid, the last rank fastest
  std::vector<std::pair<double, double>> line_;  // MACs over those of the dense layer, and time, ascending
  const Format* format_;
  DenseLayer dense_;
  double dense_ms_ = 0;
  std::size_t timed_ = 0;
};

}  // namespace tessera
