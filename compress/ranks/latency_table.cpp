#include "compress/ranks/latency_table.h"

#include <algorithm>
#include <cmath>

#include "compress/timing/summary.h"
#include "core/support/log.h"

namespace tessera {
namespace {

constexpr std::size_t kRanksOfGrid = 2;

// Multiples of `multiple_of`, evenly from the smallest to the last below `largest`, then `largest` itself.
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
  double share = 0;  // of the upper one
};

// The full rank is a level of its own: the factor that it does without makes the time jump.
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
    : format_(timed.layer.format), dense_(timed.layer.dense) {
  const std::vector<std::int64_t> largest = format_->largest_ranks(dense_);
  if (largest.size() > kRanksOfGrid) {
    time_line(timed, multiple_of, veto);
    return;
  }
  // Of two ranks 4 times 4, less the one of full ranks: between them time is that of MACs, which are bilinear.
  const std::size_t count = largest.size() == 1 ? kPoints : 4;
  for (const std::int64_t each : largest) levels_.push_back(rank_levels(each, multiple_of, count));
  time_grid(timed, veto);
}

// Against the dense layer of the same rounds, so that a machine that slows down between two points moves none of them.
double LatencyTable::time_of(const TimedLayer& timed, const Ranks& ranks, const Veto& veto) {
  const std::unique_ptr<Module> compressed = format_->layer(dense_, ranks);
  move_to(*compressed, timed.layer.dense.weight().device());
  // Timing moves batch-norm statistics and gradients of a module, and puts them back.
  Module& dense = const_cast<Module&>(*dense_.module);
  const Speed speed = veto.rank_speed(dense, *compressed, timed.input, timed.first, "ranks of " + dense_.path);
  if (timed_++ == 0) dense_ms_ = speed.dense_ms;
  return dense_ms_ / speed.ratio.median;
}

void LatencyTable::time_grid(const TimedLayer& timed, const Veto& veto) {
  std::vector<std::size_t> at(levels_.size(), 0);
  for (;;) {
    std::vector<std::int64_t> values;
    bool full = true;
    for (std::size_t k = 0; k < at.size(); ++k) {
      values.push_back(levels_[k][at[k]]);
      full = full && at[k] + 1 == levels_[k].size();
    }
    const Ranks ranks = format_->legal_ranks(dense_, named_ranks(*format_, values));
    const double share = static_cast<double>(format_->cost(dense_, ranks).macs) / static_cast<double>(dense_.macs());
    // What takes the dense layer's MACs cannot pay, and is not timed; its neighbours still need a time to lie between.
    ms_.push_back(full || share >= 1 ? dense_ms_ * share : time_of(timed, ranks, veto));
    std::size_t k = at.size();
    while (k > 0 && ++at[k - 1] == levels_[k - 1].size()) at[--k] = 0;
    if (k == 0) return;
  }
}

void LatencyTable::time_line(const TimedLayer& timed, std::int64_t multiple_of, const Veto& veto) {
  const std::vector<std::int64_t> largest = format_->largest_ranks(dense_);
  Ranks before;
  for (std::size_t i = 0; i < kPoints; ++i) {
    std::vector<std::int64_t> values;
    for (const std::int64_t each : largest) {
      const double share = static_cast<double>(i + 1) / static_cast<double>(kPoints);
      values.push_back(round_rank(std::llround(share * static_cast<double>(each)), each, multiple_of));
    }
    const Ranks ranks = format_->legal_ranks(dense_, named_ranks(*format_, values));
    const auto macs = static_cast<double>(format_->cost(dense_, ranks).macs);
    if (ranks == before || macs >= static_cast<double>(dense_.macs())) continue;
    before = ranks;
    line_.emplace_back(macs, time_of(timed, ranks, veto));
  }
  std::ranges::sort(line_);
}

double LatencyTable::ms(const Ranks& ranks) const {
  if (levels_.empty()) {
    const auto macs = static_cast<double>(format_->cost(dense_, ranks).macs);
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
