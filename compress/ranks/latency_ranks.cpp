#include "compress/ranks/latency_ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "compress/ranks/knapsack.h"
#include "core/support/log.h"

namespace tessera {
namespace {

constexpr double kClose = 0.05;
constexpr int kSolutions = 3;

struct RankOption {
  std::optional<Ranks> ranks;  // empty: dense
  double ms = 0;
  double loss = 0;
};

double loss_of(const RankLayer& layer, const Ranks& ranks) {
  double loss = 0;
  for (std::size_t k = 0; k < ranks.size(); ++k) loss += discarded_energy(layer.spectra.at(k), ranks[k].value);
  return loss;
}

// The ranks with one of them a step lower: the one that loses least energy per saved MAC. Empty at the smallest ranks.
std::optional<Ranks> lowered(const RankLayer& layer, const Ranks& ranks, std::int64_t multiple_of) {
  const double loss = loss_of(layer, ranks);
  const auto macs = static_cast<double>(layer.format->cost(layer.dense, ranks).macs);
  std::optional<Ranks> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    Ranks next = ranks;
    next[k].value = (ranks[k].value - 1) / multiple_of * multiple_of;
    if (next[k].value < 1) continue;
    next = layer.format->legal_ranks(layer.dense, std::move(next));
    const double saved = macs - static_cast<double>(layer.format->cost(layer.dense, next).macs);
    // A full rank has no factor, so the step below it may add MACs.
    const double price = saved > 0 ? (loss_of(layer, next) - loss) / saved : std::numeric_limits<double>::max();
    if (price >= least) continue;
    least = price;
    best = std::move(next);
  }
  return best;
}

// The dense option, then the ranks that pay, among those on the way from the largest to the smallest.
std::vector<RankOption> options_of(const TimedLayer& timed, const LatencyTable& table, std::int64_t multiple_of) {
  const RankLayer& layer = timed.layer;
  std::vector<RankOption> options{{std::nullopt, table.dense_ms(), 0}};
  Ranks ranks;
  const std::vector<std::int64_t> largest = layer.format->largest_ranks(layer.dense);
  for (std::size_t k = 0; k < largest.size(); ++k) ranks.push_back({std::string(layer.format->rank_names()[k].name), largest[k]});
  for (std::optional<Ranks> at = layer.format->legal_ranks(layer.dense, ranks); at; at = lowered(layer, *at, multiple_of)) {
    const double ms = table.ms(*at);
    const bool pays = layer.format->cost(layer.dense, *at).macs < layer.dense.macs() && ms * kFasterRatio <= table.dense_ms();
    if (pays) options.push_back({*at, ms, loss_of(layer, *at)});
  }
  return options;
}

// Puts compressed layers in the places of dense ones. The dense ones go back at the end of the scope.
struct Placed {
  explicit Placed(std::unique_ptr<Module>& network) : root(network) {}
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;
  ~Placed() {
    for (Replaced& layer : layers) replace_module(root, layer.path, std::move(layer.dense));
  }
  void put(const std::string& path, std::unique_ptr<Module> compressed) {
    layers.push_back({path, replace_module(root, path, std::move(compressed))});
  }

  std::unique_ptr<Module>& root;
  std::vector<Replaced> layers;
};

class LatencySearch {
 public:
  LatencySearch(std::unique_ptr<Module>& root, std::span<const TimedLayer> layers, const Shape& input, const Veto& veto)
      : root_(root), layers_(layers), input_(input), veto_(veto) {}

  void time_layers(std::int64_t multiple_of) {
    if (veto_.shares_rank_timings()) veto_.share_rank_timings(timings(multiple_of));
    // Keys of decisions name no layer, so a layer takes the times of one with the same shape from the scope of decisions.
    for (const TimedLayer& each : layers_)
      options_.push_back(options_of(each, LatencyTable(each, multiple_of, veto_), multiple_of));
  }

  // The timings that the tables will ask for.
  std::vector<RankTiming> timings(std::int64_t multiple_of) const {
    std::vector<RankTiming> all;
    for (const TimedLayer& each : layers_) {
      for (Ranks& ranks : LatencyTable::timed_ranks(each, multiple_of)) all.push_back(rank_timing(each, std::move(ranks)));
    }
    return all;
  }

  using Choice = std::vector<std::size_t>;  // the index of an option for each layer

  Choice fastest() const {
    Choice choice;
    for (const std::vector<RankOption>& options : options_) {
      choice.push_back(static_cast<std::size_t>(std::ranges::min_element(options, {}, &RankOption::ms) - options.begin()));
    }
    return choice;
  }

  // Milliseconds that the layers save when each is timed alone.
  double saved(const Choice& choice) const {
    double sum = 0;
    for (std::size_t i = 0; i < choice.size(); ++i) sum += options_[i].front().ms - options_[i][choice[i]].ms;
    return sum;
  }

  // The choice with the least loss among those that save this many milliseconds.
  std::optional<Choice> least_lossy(double saving) const {
    double dense = 0;
    std::vector<std::vector<LayerOption>> all;
    for (const std::vector<RankOption>& options : options_) {
      dense += options.front().ms;
      std::vector<LayerOption>& layer = all.emplace_back();
      for (const RankOption& option : options) layer.push_back({option.ms, option.loss});
    }
    return least_loss(all, dense - saving);
  }

  Speed measured(const Choice& choice) {
    Placed placed(root_);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const std::optional<Ranks>& ranks = options_[i][choice[i]].ranks;
      if (!ranks) continue;
      const RankLayer& layer = layers_[i].layer;
      std::unique_ptr<Module> compressed = layer.format->layer(layer.dense, *ranks);
      move_to(*compressed, layer.dense.weight().device());
      placed.put(layer.dense.path, std::move(compressed));
    }
    return veto_.rank_speed(root_, placed.layers, input_);
  }

  std::vector<RankChoice> choices(const Choice& choice) const {
    std::vector<RankChoice> all;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const std::optional<Ranks>& ranks = options_[i][choice[i]].ranks;
      all.push_back({ranks, ranks                     ? ""
                            : options_[i].size() == 1 ? "no ranks make it faster"
                                                      : "the asked speed-up does not need it"});
    }
    return all;
  }

 private:
  std::unique_ptr<Module>& root_;
  std::span<const TimedLayer> layers_;
  const Shape& input_;
  const Veto& veto_;
  std::vector<std::vector<RankOption>> options_;  // for each layer; the first option is dense
};

double rounded(double ratio) { return std::round(1e4 * ratio) / 1e4; }

}  // namespace

void LatencyOutcome::fields(Fields& f) {
  f.add("asked", asked, {.help = "speed-up"});
  f.add("fastest", fastest, {.help = "measured at the fastest ranks of each layer", .clock = true});
  f.add("predicted", predicted, {.help = "by the layers' times", .clock = true});
  f.add("measured", measured, {.help = "of the whole network", .clock = true});
  f.add("solutions", solutions, {.help = "that were measured; 0 where it cannot be reached", .clock = true});
}

LatencyRanks ranks_by_latency(double speedup, std::int64_t multiple_of, std::unique_ptr<Module>& root,
                              std::span<const TimedLayer> layers, const Shape& input, const Veto& veto) {
  LatencySearch search(root, layers, input, veto);
  search.time_layers(multiple_of);
  LatencySearch::Choice choice = search.fastest();
  const Speed fastest = search.measured(choice);
  const double dense_ms = fastest.dense_ms;
  // How many milliseconds the network saves per millisecond that its layers save when timed alone.
  double scale = 1;
  const auto predicted = [&] { return rounded(dense_ms / std::max(dense_ms - scale * search.saved(choice), 1e-3 * dense_ms)); };
  LatencyOutcome outcome{.asked = speedup, .fastest = fastest.ratio.median};
  outcome.predicted = predicted();
  outcome.measured = outcome.fastest;
  LatencyRanks best{search.choices(choice), outcome};
  if (search.saved(choice) <= 0 || outcome.fastest < speedup) return best;
  const auto miss = [&] { return std::abs(outcome.measured / speedup - 1); };
  double least = miss();
  scale = (dense_ms - dense_ms / outcome.fastest) / search.saved(choice);
  for (bool close = false; !close && outcome.solutions < kSolutions; ++outcome.solutions) {
    choice = search.least_lossy((dense_ms - dense_ms / speedup) / scale).value_or(search.fastest());
    outcome.predicted = predicted();
    outcome.measured = search.measured(choice).ratio.median;
    close = miss() <= kClose;
    if (miss() < least || close) best = {search.choices(choice), outcome};
    least = std::min(least, miss());
    const double saved = search.saved(choice);
    if (saved > 0 && outcome.measured > 1) scale = (dense_ms - dense_ms / outcome.measured) / saved;
  }
  best.outcome.solutions = outcome.solutions;
  return best;
}

}  // namespace tessera
