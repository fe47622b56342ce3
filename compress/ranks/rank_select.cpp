#include "compress/ranks/rank_select.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/support/error.h"

namespace tessera {

namespace {

constexpr Range kFraction{.min = 0, .max = 1, .open_min = true};

// Ranks of each layer under one budget, and the cost that the budget is counted in.
class Selection {
 public:
  Selection(const RankConfig& config, std::span<const RankLayer> layers)
      : config_(config), layers_(layers), ranks_(layers.size()) {}

  void set(std::size_t i, Tucker2Ranks ranks) { ranks_[i] = ranks; }
  void set_energy(double energy) {
    for (std::size_t i = 0; i < layers_.size(); ++i) ranks_[i] = ranks_at(layers_[i], energy);
  }
  std::int64_t dense(std::size_t i) const {
    return counts_parameters() ? layers_[i].dense_parameters() : layers_[i].dense_macs();
  }
  std::int64_t dense_total() const {
    return total([this](std::size_t i) { return dense(i); });
  }
  std::int64_t kept_total() const {
    return total([this](std::size_t i) { return std::min(factored(i, ranks_[i]), dense(i)); });
  }
  bool pays(std::size_t i) const { return factored(i, ranks_[i]) < dense(i); }
  bool grow(std::int64_t slack);
  std::vector<RankChoice> choices() const;

 private:
  bool counts_parameters() const { return config_.params.has_value(); }
  std::int64_t factored(std::size_t i, Tucker2Ranks r) const {
    return counts_parameters() ? layers_[i].tucker_parameters(r) : layers_[i].tucker_macs(r);
  }
  template <class F>
  std::int64_t total(F&& cost) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) sum += cost(i);
    return sum;
  }
  Tucker2Ranks ranks_at(const RankLayer& layer, double energy) const {
    return {.out = round_rank(energy_rank(layer.out_spectrum, energy), layer.out, config_.multiple_of),
            .in = round_rank(energy_rank(layer.in_spectrum, energy), layer.in, config_.multiple_of)};
  }
  std::int64_t next(std::int64_t rank, std::int64_t size) const { return std::min(size, rank + config_.multiple_of); }

  const RankConfig& config_;
  std::span<const RankLayer> layers_;
  std::vector<Tucker2Ranks> ranks_;
};

// Squared singular values that a rank discards, as a fraction of all.
double discarded(std::span<const double> spectrum, std::int64_t rank) {
  const auto add_square = [](double sum, double s) { return sum + s * s; };
  const double all = std::accumulate(spectrum.begin(), spectrum.end(), 0.0, add_square);
  const auto kept = std::min<std::int64_t>(rank, std::ssize(spectrum));
  return all > 0 ? std::accumulate(spectrum.begin() + kept, spectrum.end(), 0.0, add_square) / all : 0.0;
}

// Raises one rank by one step: of those that fit into the slack and still pay, the mode that discards most. False when none fits.
bool Selection::grow(std::int64_t slack) {
  double most = -1;
  std::size_t chosen = 0;
  Tucker2Ranks raised;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const RankLayer& layer = layers_[i];
    const Tucker2Ranks now = ranks_[i];
    if (!pays(i)) continue;
    const Tucker2Ranks wider_out{.out = next(now.out, layer.out), .in = now.in};
    const Tucker2Ranks wider_in{.out = now.out, .in = next(now.in, layer.in)};
    const std::pair<Tucker2Ranks, double> steps[]{{wider_out, discarded(layer.out_spectrum, now.out)},
                                                  {wider_in, discarded(layer.in_spectrum, now.in)}};
    for (const auto& [wider, loss] : steps) {
      const std::int64_t cost = factored(i, wider);
      if (wider == now || loss <= most || cost >= dense(i) || cost - factored(i, now) > slack) continue;
      most = loss;
      chosen = i;
      raised = wider;
    }
  }
  if (most < 0) return false;
  ranks_[chosen] = raised;
  return true;
}

std::vector<RankChoice> Selection::choices() const {
  std::vector<RankChoice> all;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (pays(i)) {
      all.push_back({ranks_[i], ""});
      continue;
    }
    const std::string_view unit = counts_parameters() ? "parameters" : "MACs";
    all.push_back({std::nullopt, str("factored ", unit, " ", factored(i, ranks_[i]), " at ranks out ", ranks_[i].out, " in ",
                                     ranks_[i].in, " are not below dense ", dense(i))});
  }
  return all;
}

// Ranks whose cost is at most `budget`, as close to it as single steps get; `asked` is budget's fraction of `whole`.
void fit(Selection& selection, const RankConfig& config, std::int64_t fixed, std::int64_t whole, const std::string& where) {
  const double asked = config.params ? *config.params : *config.macs;
  const double budget = asked * static_cast<double>(whole);
  const auto cost = [&] { return fixed + selection.kept_total(); };
  const auto fits = [&](double energy) {
    selection.set_energy(energy);
    return static_cast<double>(cost()) <= budget;
  };
  if (fits(1.0)) return;
  TESSERA_CHECK(fits(0.0), ConfigError, "ranks: ", to_string(config), where, " cannot be reached: multiples of ",
                config.multiple_of, " keep at least ", static_cast<double>(cost()) / static_cast<double>(whole),
                "; ask for more, or match more layers");
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  selection.set_energy(low);
  while (selection.grow(static_cast<std::int64_t>(budget) - cost())) {
  }
}

std::vector<RankChoice> select_by_fraction(const RankConfig& config, std::span<const RankLayer> layers, FixedCost fixed) {
  if (config.per == "layer") {
    std::vector<RankChoice> all;
    for (const RankLayer& layer : layers) {
      Selection one(config, {&layer, 1});
      fit(one, config, 0, one.dense_total(), str(" for layer '", layer.path, "'"));
      all.push_back(one.choices().front());
    }
    return all;
  }
  Selection selection(config, layers);
  const std::int64_t unchanged = fixed.matched + (config.per == "network" ? fixed.other : 0);
  fit(selection, config, unchanged, unchanged + selection.dense_total(), "");
  return selection.choices();
}

}  // namespace

void RankConfig::fields(Fields& f) {
  f.add("out", out, {.help = "rank of the output channels", .range = at_least(1), .example = "32", .observable = "report"});
  f.add("in", in, {.help = "rank of the input channels", .range = at_least(1), .example = "64", .observable = "report"});
  f.add("params", params, {.help = "fraction of parameters kept", .range = kFraction, .example = "0.3", .observable = "report"});
  f.add("macs", macs, {.help = "fraction of MACs kept", .range = kFraction, .example = "0.4", .observable = "report"});
  f.add("energy", energy,
        {.help = "fraction of each mode's squared singular values kept",
         .range = kFraction,
         .example = "0.9",
         .observable = "report"});
  f.add("per", per,
        {.help = "what params and macs are a fraction of", .choices = {"layer", "matched", "network"}, .observable = "report"});
  f.add("multiple_of", multiple_of,
        {.help = "ranks are rounded to a multiple of this", .range = at_least(1), .example = "16", .observable = "report"});
  f.require(out.has_value() == in.has_value(), out ? "out" : "in", "explicit ranks name both modes: {out: 32, in: 64}");
  f.require(kinds() == 1, "", "give exactly one of {out, in}, params, macs, energy");
}

std::string to_string(const RankConfig& config) {
  if (config.params) return str("params ", *config.params, " per ", config.per);
  if (config.macs) return str("macs ", *config.macs, " per ", config.per);
  if (config.energy) return str("energy ", *config.energy);
  return str("out ", config.out.value_or(0), " in ", config.in.value_or(0));
}

std::int64_t round_rank(std::int64_t rank, std::int64_t size, std::int64_t multiple_of) {
  const std::int64_t nearest = (rank + multiple_of / 2) / multiple_of * multiple_of;
  return std::min(std::max(nearest, multiple_of), size);
}

std::int64_t energy_rank(std::span<const double> spectrum, double energy) {
  double all = 0;
  for (const double s : spectrum) all += s * s;
  double kept = 0;
  std::int64_t rank = 0;
  // Summed in the same order as `all`, so that energy 1 is reached exactly.
  while (rank < std::ssize(spectrum) && (rank == 0 || kept < energy * all)) {
    kept += spectrum[static_cast<std::size_t>(rank)] * spectrum[static_cast<std::size_t>(rank)];
    ++rank;
  }
  return std::max<std::int64_t>(rank, 1);
}

std::vector<RankChoice> select_ranks(const RankConfig& config, std::span<const RankLayer> layers, FixedCost fixed) {
  if (config.params || config.macs) return select_by_fraction(config, layers, fixed);
  Selection selection(config, layers);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const RankLayer& layer = layers[i];
    if (config.energy) {
      // Rounded up, unlike the others: rounding down would keep less than was asked for.
      const auto at_least_energy = [&](std::span<const double> spectrum, std::int64_t size) {
        const std::int64_t m = config.multiple_of;
        return std::min((energy_rank(spectrum, *config.energy) + m - 1) / m * m, size);
      };
      selection.set(i,
                    {.out = at_least_energy(layer.out_spectrum, layer.out), .in = at_least_energy(layer.in_spectrum, layer.in)});
    } else {
      check_ranks(layer.path, layer.out, layer.in, {.out = *config.out, .in = *config.in});
      selection.set(i, {.out = round_rank(*config.out, layer.out, config.multiple_of),
                        .in = round_rank(*config.in, layer.in, config.multiple_of)});
    }
  }
  return selection.choices();
}

}  // namespace tessera
