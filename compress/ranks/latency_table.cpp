#include "compress/ranks/latency_table.h"

#include <algorithm>
#include <cmath>

#include "compress/timing/summary.h"
#include "core/support/log.h"

namespace tessera {
namespace {

constexpr std::size_t kRanksOfGrid = 2;

// Levels of a rank: multiples of `multiple_of`, evenly from the smallest to the last one below `largest`, then `largest` itself.
std::vector<std::int64_t> rank_levels(std::int64_t largest, std::int64_t multiple_of, std::size_t count) {
  std::vector<std::int64_t> levels;
  const std::int64_t steps = (largest - 1) / multiple_of;  // multiples below the largest
  for (std::size_t i = 0; i + 1 < count && steps > 0; ++i) {
    const double share = count > 2 ? static_cast<double>(i) / static_cast<double>(count - 2) : 0;
    const std::int64_t level = (1 + std::llround(share * static_cast<double>(steps - 1))) * multiple_of;
    if (levels.empty() || level > levels.back()) levels.push_back(level);
  }
  levels.push_back(largest);
  return levels;
}

Ranks named_ranks(const Format& format, std::span<const std::int64_t> values) {
  Ranks ranks;
  for (std::size_t k = 0; k < values.size(); ++k) ranks.push_back({std::string(format.rank_names()[k].name), values[k]});
  return ranks;
}

struct Between {
  std::size_t lower = 0, upper = 0;
  double share = 0;  // the weight of the upper level
};

// The full rank is a separate level without interpolation, because it needs no factor, and the time jumps there.
Between between(const std::vector<std::int64_t>& levels, std::int64_t rank) {
  const std::size_t full = levels.size() - 1;
  if (rank >= levels[full]) return {full, full, 0};
  if (full == 0 || rank <= levels[0]) return {0, 0, 0};
  for (std::size_t i = 1; i < full; ++i) {
    if (rank > levels[i]) continue;
    return {i - 1, i, static_cast<double>(rank - levels[i - 1]) / static_cast<double>(levels[i] - levels[i - 1])};
  }
  return {full - 1, full - 1, 0};
}

}  // namespace

LatencyTable::LatencyTable(const TimedLayer& timed, std::int64_t multiple_of, const Veto& veto)
    : levels_(levels_of(timed, multiple_of)), format_(timed.layer.format), dense_(timed.layer.dense) {
  if (levels_.empty()) {
    for (const Point& point : line_of(timed, multiple_of)) line_.emplace_back(point.macs, time_of(timed, point.ranks, veto));
    std::ranges::sort(line_);
    return;
  }
  for (const Point& point : grid_of(timed, levels_)) {
    ms_.push_back(point.timed ? time_of(timed, point.ranks, veto) : dense_ms_ * point.macs);
  }
}

std::vector<Ranks> LatencyTable::timed_ranks(const TimedLayer& timed, std::int64_t multiple_of) {
  const std::vector<Levels> levels = levels_of(timed, multiple_of);
  std::vector<Ranks> ranks;
  for (Point& point : levels.empty() ? line_of(timed, multiple_of) : grid_of(timed, levels)) {
    if (point.timed) ranks.push_back(std::move(point.ranks));
  }
  return ranks;
}

// A format that is timed along a line has no levels.
std::vector<LatencyTable::Levels> LatencyTable::levels_of(const TimedLayer& timed, std::int64_t multiple_of) {
  const std::vector<std::int64_t> largest = timed.layer.format->largest_ranks(timed.layer.dense);
  std::vector<Levels> levels;
  if (largest.size() > kRanksOfGrid) return levels;
  // Two ranks have 4 x 4 points; that of both full is not timed. Between points time follows the MACs, which are bilinear.
  const std::size_t count = largest.size() == 1 ? kPoints : 4;
  for (const std::int64_t each : largest) levels.push_back(rank_levels(each, multiple_of, count));
  return levels;
}

RankTiming rank_timing(const TimedLayer& timed, Ranks ranks) {
  const RankLayer& layer = timed.layer;
  const auto compressed = [format = layer.format, dense = layer.dense, ranks = std::move(ranks)] {
    std::unique_ptr<Module> made = format->layer(dense, ranks);
    move_to(*made, dense.weight().device());
    return made;
  };
  // The cast is safe: timing changes batch-norm statistics and gradients of the module, but restores them.
  return {.what = "ranks of " + layer.dense.path,
          .dense = const_cast<Module*>(layer.dense.module),
          .compressed = compressed,
          .input = timed.input,
          .first = timed.first};
}

// Compares with the dense layer in the same rounds, so that a machine that slows down between two points does not shift any.
double LatencyTable::time_of(const TimedLayer& timed, const Ranks& ranks, const Veto& veto) {
  const RankTiming timing = rank_timing(timed, ranks);
  const std::unique_ptr<Module> compressed = timing.compressed();
  const Speed speed = veto.rank_speed(*timing.dense, *compressed, timing.input, timing.first, timing.what);
  if (timed_++ == 0) dense_ms_ = speed.dense_ms;
  return dense_ms_ / speed.ratio.median;
}

std::vector<LatencyTable::Point> LatencyTable::grid_of(const TimedLayer& timed, const std::vector<Levels>& levels) {
  const Format& format = *timed.layer.format;
  const DenseLayer& dense = timed.layer.dense;
  std::vector<Point> points;
  std::vector<std::size_t> at(levels.size(), 0);
  for (;;) {
    std::vector<std::int64_t> values;
    bool full = true;
    for (std::size_t k = 0; k < at.size(); ++k) {
      values.push_back(levels[k][at[k]]);
      full = full && at[k] + 1 == levels[k].size();
    }
    Ranks ranks = format.legal_ranks(dense, named_ranks(format, values));
    const double macs = static_cast<double>(format.cost(dense, ranks).macs) / static_cast<double>(dense.macs());
    points.push_back({std::move(ranks), macs, !full && macs < 1});
    std::size_t k = at.size();
    while (k > 0 && ++at[k - 1] == levels[k - 1].size()) at[--k] = 0;
    if (k == 0) return points;
  }
}

std::vector<LatencyTable::Point> LatencyTable::line_of(const TimedLayer& timed, std::int64_t multiple_of) {
  const Format& format = *timed.layer.format;
  const DenseLayer& dense = timed.layer.dense;
  const std::vector<std::int64_t> largest = format.largest_ranks(dense);
  std::vector<Point> points;
  for (std::size_t i = 0; i < kPoints; ++i) {
    std::vector<std::int64_t> values;
    for (const std::int64_t each : largest) {
      const double share = static_cast<double>(i + 1) / static_cast<double>(kPoints);
      values.push_back(round_rank(std::llround(share * static_cast<double>(each)), each, multiple_of));
    }
    Ranks ranks = format.legal_ranks(dense, named_ranks(format, values));
    const double macs = static_cast<double>(format.cost(dense, ranks).macs) / static_cast<double>(dense.macs());
    if ((!points.empty() && ranks == points.back().ranks) || macs >= 1) continue;
    points.push_back({std::move(ranks), macs});
  }
  return points;
}

double LatencyTable::ms(const Ranks& ranks) const {
  if (levels_.empty()) {
    const double macs = static_cast<double>(format_->cost(dense_, ranks).macs) / static_cast<double>(dense_.macs());
    if (line_.empty()) return dense_ms_;
    const auto upper = std::ranges::lower_bound(line_, macs, {}, &std::pair<double, double>::first);
    if (upper == line_.begin()) return line_.front().second;
    if (upper == line_.end()) return line_.back().second;
    const auto lower = upper - 1;
    const double share = (macs - lower->first) / (upper->first - lower->first);
    return lower->second + share * (upper->second - lower->second);
  }
  std::vector<Between> places;
  for (std::size_t k = 0; k < levels_.size(); ++k) places.push_back(between(levels_[k], ranks[k].value));
  double sum = 0;
  for (std::size_t corner = 0; corner < std::size_t{1} << places.size(); ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t k = 0; k < places.size(); ++k) {
      const bool upper = (corner >> k & 1) != 0;
      weight *= upper ? places[k].share : 1 - places[k].share;
      index = index * levels_[k].size() + (upper ? places[k].upper : places[k].lower);
    }
    sum += weight * (weight > 0 ? ms_[index] : 0);
  }
  return sum;
}

}  // namespace tessera
