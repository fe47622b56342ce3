#include "compress/ranks/rank_select.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "compress/formats/builtin.h"
#include "compress/ranks/evbmf.h"
#include "core/support/error.h"

namespace tessera {

namespace {

constexpr Range kFraction{.min = 0, .max = 1, .open_min = true};

// The ranks of each layer under one budget, and the cost that counts towards the budget.
class Selection {
 public:
  Selection(const RankConfig& config, std::span<const RankLayer> layers) : config_(config), layers_(layers) {
    for (const RankLayer& layer : layers) {
      largest_.push_back(layer.format->largest_ranks(layer.dense));
      Ranks& ranks = ranks_.emplace_back();
      for (std::size_t k = 0; k < largest_.back().size(); ++k) {
        ranks.push_back({std::string(layer.format->rank_names()[k].name), 1});
      }
    }
  }

  // `rank_at(i, k)` gives rank k of layer i, before it is lowered to what the layer's other ranks allow.
  template <class F>
  void set(F&& rank_at) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      for (std::size_t k = 0; k < ranks_[i].size(); ++k) ranks_[i][k].value = rank_at(i, k);
      ranks_[i] = layers_[i].format->legal_ranks(layers_[i].dense, std::move(ranks_[i]));
    }
  }
  void set_energy(double energy) {
    set([&](std::size_t i, std::size_t k) {
      return round_rank(energy_rank(layers_[i].spectra.at(k), energy), largest_[i][k], config_.multiple_of);
    });
  }
  std::int64_t largest(std::size_t i, std::size_t k) const { return largest_[i][k]; }
  std::int64_t dense(std::size_t i) const {
    return counts_parameters(i) ? layers_[i].dense.parameters() : layers_[i].dense.macs();
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
  bool counts_parameters(std::size_t i) const { return config_.params.has_value() || !layers_[i].format->lowers_macs(); }
  std::int64_t factored(std::size_t i, const Ranks& ranks) const {
    const FormatCost cost = layers_[i].format->cost(layers_[i].dense, ranks);
    return counts_parameters(i) ? cost.parameters : cost.macs;
  }
  template <class F>
  std::int64_t total(F&& cost) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) sum += cost(i);
    return sum;
  }
  std::optional<Ranks> raised(std::size_t i, std::size_t k) const;

  const RankConfig& config_;
  std::span<const RankLayer> layers_;
  std::vector<std::vector<std::int64_t>> largest_;
  std::vector<Ranks> ranks_;
};

// The layer's ranks with rank k one step higher. None if the rank is at its largest or the ranks would not fit together.
std::optional<Ranks> Selection::raised(std::size_t i, std::size_t k) const {
  Ranks wider = ranks_[i];
  wider[k].value = std::min(largest_[i][k], wider[k].value + config_.multiple_of);
  if (wider == ranks_[i] || !layers_[i].format->rank_problems(layers_[i].dense, wider).empty()) return std::nullopt;
  return wider;
}

// Raises one rank by one step: the one that discards most, among those that fit into the slack and still pay. False if none fits.
bool Selection::grow(std::int64_t slack) {
  double most = -1;
  std::size_t chosen = 0;
  Ranks best;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!pays(i)) continue;
    const std::int64_t now = factored(i, ranks_[i]);
    for (std::size_t k = 0; k < ranks_[i].size(); ++k) {
      const double loss = discarded_energy(layers_[i].spectra.at(k), ranks_[i][k].value);
      const std::optional<Ranks> wider = loss > most ? raised(i, k) : std::nullopt;
      if (!wider) continue;
      const std::int64_t cost = factored(i, *wider);
      if (cost >= dense(i) || cost - now > slack) continue;
      most = loss;
      chosen = i;
      best = *wider;
    }
  }
  if (most < 0) return false;
  ranks_[chosen] = best;
  return true;
}

std::vector<RankChoice> Selection::choices() const {
  std::vector<RankChoice> all;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (pays(i)) {
      all.push_back({ranks_[i], ""});
      continue;
    }
    const std::string_view unit = counts_parameters(i) ? "parameters" : "MACs";
    all.push_back({std::nullopt, str("factored ", unit, " ", factored(i, ranks_[i]), " at ranks ", to_string(ranks_[i]),
                                     " are not below dense ", dense(i))});
  }
  return all;
}

// Sets ranks with a cost of at most the budget, as close to it as single steps get. The budget is a fraction of `whole`.
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

// The rank that a spectral rule asks for, as rank k of a layer.
std::int64_t spectral_rank(const RankConfig& config, const RankLayer& layer, std::size_t k) {
  const std::vector<double>& spectrum = layer.spectra.at(k);
  if (config.energy) return energy_rank(spectrum, *config.energy);
  if (config.error) {
    const double share = *config.error * *config.error / static_cast<double>(layer.spectra.size());
    return energy_rank(spectrum, 1 - share);
  }
  // Every spectrum belongs to a matrix with all the weights of the layer.
  const std::int64_t values = std::ssize(spectrum), others = std::max<std::int64_t>(1, layer.dense.weights() / values);
  const double full = static_cast<double>(std::min(values, others));
  const double found = static_cast<double>(evbmf_rank(spectrum, values, others));
  return std::max<std::int64_t>(1, std::llround(std::ceil(full - *config.vbmf * (full - found))));
}

std::vector<RankChoice> select_by_fraction(const RankConfig& config, std::span<const RankLayer> layers, FixedCost fixed) {
  if (config.per == "layer") {
    std::vector<RankChoice> all;
    for (const RankLayer& layer : layers) {
      Selection one(config, {&layer, 1});
      fit(one, config, 0, one.dense_total(), str(" for layer '", layer.dense.path, "'"));
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
  f.add("latency", latency,
        {.help = "ranks at which the network is so many times as fast, timed on the device",
         .example = "{speedup: 1.5}",
         .observable = "report"});
  rule_fields(f);
  f.require(kinds() == 1, "", "give exactly one of explicit ranks, params, macs, energy, error, vbmf, latency");
}

void RankConfig::rule_fields(Fields& f) {
  Ranks named;
  for (const RankName& rank : all_rank_names()) {
    const auto given = std::ranges::find(explicit_ranks, rank.name, &Rank::name);
    std::optional<std::int64_t> value;
    if (given != explicit_ranks.end()) value = given->value;
    f.add(rank.name, value, {.help = rank.help, .range = at_least(1), .example = rank.example, .observable = "report"});
    if (value) named.push_back({std::string(rank.name), *value});
  }
  explicit_ranks = std::move(named);
  f.add("params", params, {.help = "fraction of parameters kept", .range = kFraction, .example = "0.3", .observable = "report"});
  f.add("macs", macs, {.help = "fraction of MACs kept", .range = kFraction, .example = "0.4", .observable = "report"});
  f.add("energy", energy,
        {.help = "fraction of the squared singular values kept, of each rank's spectrum",
         .range = kFraction,
         .example = "0.9",
         .observable = "report"});
  f.add("error", error,
        {.help = "largest relative error of the weight, Frobenius norm, shared evenly among its spectra",
         .range = {.min = 0, .max = 1, .open_min = true, .open_max = true},
         .example = "0.3",
         .observable = "report"});
  f.add("vbmf", vbmf,
        {.help = "1: the ranks that variational Bayes finds above the noise; less: so much of the way down to them",
         .range = kFraction,
         .example = "0.8",
         .observable = "report"});
  f.add("per", per,
        {.help = "what params and macs are a fraction of", .choices = {"layer", "matched", "network"}, .observable = "report"});
  f.add("multiple_of", multiple_of,
        {.help = "ranks are rounded to a multiple of this", .range = at_least(1), .example = "16", .observable = "report"});
}

void LatencyTarget::fields(Fields& f) {
  f.add("speedup", speedup,
        {.help = "of the whole network over its dense self, at keep_for's batch and phase",
         .range = {.min = 1, .open_min = true},
         .example = "1.5",
         .observable = "report"});
}

std::string to_string(const RankConfig& config) {
  if (config.params) return str("params ", *config.params, " per ", config.per);
  if (config.macs) return str("macs ", *config.macs, " per ", config.per);
  if (config.energy) return str("energy ", *config.energy);
  if (config.error) return str("error ", *config.error);
  if (config.vbmf) return str("vbmf ", *config.vbmf);
  if (config.latency) return str("latency speedup ", config.latency->speedup);
  return to_string(config.explicit_ranks);
}

std::string why_not_ranks_of(const Format& format, const RankConfig& config) {
  if ((config.macs || config.latency) && !format.lowers_macs()) {
    return str(format.name(), " lowers the MACs of no ", kinds_text(format),
               "; ask for params, energy, error, vbmf or explicit ranks");
  }
  if ((config.by_spectra() > 0 || config.latency) && !format.spectra_tell_errors()) {
    return str(format.name(), " has no spectra that say what a rank discards; ask for macs, params or explicit ranks");
  }
  if (config.explicit_ranks.empty()) return "";
  std::string names, example;
  for (const RankName& rank : format.rank_names()) {
    names += str(names.empty() ? "" : ", ", rank.name);
    example += str(example.empty() ? "" : ", ", rank.name, ": ", rank.example);
  }
  for (const Rank& rank : config.explicit_ranks) {
    if (std::ranges::find(format.rank_names(), rank.name, &RankName::name) == format.rank_names().end())
      return str(format.name(), " has no rank '", rank.name, "'; it has: ", names);
  }
  const std::span<const RankName> known = format.rank_names();
  const auto same = [](const Rank& rank, const RankName& name) { return rank.name == name.name; };
  const bool first = std::ranges::equal(config.explicit_ranks, known.first(config.explicit_ranks.size()), same);
  if (first && config.explicit_ranks.size() >= format.fewest_ranks()) return "";
  const bool all = format.fewest_ranks() == known.size();
  return str("explicit ranks of ", format.name(), all ? " name all of: " : " name the first of: ", names, "; e.g. {", example,
             '}');
}

void RuleChoice::fields(Fields& f) {
  f.add("rule", rule, {.help = "as a report says it"});
  f.add("ranks", ranks, {.help = "of each layer; dense where it stays so"});
  f.add("parameters_kept", parameters_kept, {.help = "fraction, of these layers"});
  f.add("macs_kept", macs_kept, {.help = "fraction, of these layers"});
}

std::vector<RuleChoice> compare_rules(std::span<const RankConfig> rules, std::span<const RankLayer> layers) {
  std::vector<RuleChoice> compared;
  for (const RankConfig& rule : rules) {
    const auto refuses = [&](const RankLayer& layer) { return !why_not_ranks_of(*layer.format, rule).empty(); };
    if (layers.empty() || std::ranges::any_of(layers, refuses)) continue;
    try {
      RuleChoice row{.rule = to_string(rule)};
      std::int64_t parameters = 0, macs = 0, all_parameters = 0, all_macs = 0;
      const std::vector<RankChoice> choices = select_ranks(rule, layers);
      for (std::size_t i = 0; i < layers.size(); ++i) {
        const DenseLayer& dense = layers[i].dense;
        const std::optional<Ranks>& ranks = choices[i].ranks;
        const FormatCost cost = ranks ? layers[i].format->cost(dense, *ranks) : FormatCost{dense.parameters(), dense.macs(), 0};
        row.ranks.push_back(ranks ? to_string(*ranks) : "dense");
        parameters += cost.parameters;
        macs += cost.macs;
        all_parameters += dense.parameters();
        all_macs += dense.macs();
      }
      row.parameters_kept = static_cast<double>(parameters) / static_cast<double>(all_parameters);
      if (all_macs > 0) row.macs_kept = static_cast<double>(macs) / static_cast<double>(all_macs);
      compared.push_back(std::move(row));
    } catch (const ConfigError&) {  // a fraction below what the smallest ranks keep
    }
  }
  return compared;
}

std::vector<RankProblem> explicit_rank_problems(const RankConfig& config, std::span<const RankLayer> layers) {
  std::vector<RankProblem> all;
  for (const Rank& rank : config.explicit_ranks) {
    for (const RankLayer& layer : layers) {
      for (const RankProblem& problem : layer.format->rank_problems(layer.dense, config.explicit_ranks)) {
        if (problem.rank == rank.name) all.push_back({rank.name, str("layer '", layer.dense.path, "': ", problem.message)});
      }
    }
  }
  return all;
}

std::int64_t round_rank(std::int64_t rank, std::int64_t size, std::int64_t multiple_of) {
  const std::int64_t nearest = (rank + multiple_of / 2) / multiple_of * multiple_of;
  return std::min(std::max(nearest, multiple_of), size);
}

double discarded_energy(std::span<const double> spectrum, std::int64_t rank) {
  const auto add_square = [](double sum, double s) { return sum + s * s; };
  const double all = std::accumulate(spectrum.begin(), spectrum.end(), 0.0, add_square);
  const auto kept = std::min<std::int64_t>(rank, std::ssize(spectrum));
  return all > 0 ? std::accumulate(spectrum.begin() + kept, spectrum.end(), 0.0, add_square) / all : 0.0;
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
  if (config.by_spectra() > 0) {
    // Rounded up, unlike the others: rounding down would keep less than was asked for.
    selection.set([&](std::size_t i, std::size_t k) {
      const std::int64_t m = config.multiple_of;
      return std::min((spectral_rank(config, layers[i], k) + m - 1) / m * m, selection.largest(i, k));
    });
    return selection.choices();
  }
  if (config.latency) {
    selection.set([&](std::size_t i, std::size_t k) { return std::min(config.multiple_of, selection.largest(i, k)); });
    return selection.choices();
  }
  const std::vector<RankProblem> problems = explicit_rank_problems(config, layers);
  TESSERA_CHECK(problems.empty(), ConfigError, problems.front().message);
  selection.set([&](std::size_t i, std::size_t k) {
    const std::string_view name = layers[i].format->rank_names()[k].name;
    return round_rank(rank_of(config.explicit_ranks, name), selection.largest(i, k), config.multiple_of);
  });
  return selection.choices();
}

}  // namespace tessera
