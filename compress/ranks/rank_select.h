// Ranks for a set of layers: by number, by what the spectra say, or by the fraction of parameters or MACs that is kept. Works for
// any format (compress/formats/format.h) and any number of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/formats/format.h"
#include "core/config/fields.h"

namespace tessera {

struct LatencyTarget {
  double speedup = 2;  // of the whole network over its dense self, where keep_for says
  void fields(Fields& f);
};

// How ranks are asked for: exactly one of explicit ranks, params, macs, energy, error, vbmf, latency.
struct RankConfig {
  Ranks explicit_ranks{};  // those that the file names, in the order of all_rank_names()
  std::optional<double> params{}, macs{};  // fraction kept
  std::optional<double> energy{};  // kept squared singular values of each spectrum, as a fraction
  std::optional<double> error{};  // bound on ||W - P(W)|| / ||W||: each of n spectra discards error^2 / n of its energy at most
  std::optional<double> vbmf{};  // full rank - vbmf (full rank - r), r by EVBMF (compress/ranks/evbmf.h), of each spectrum
  std::optional<LatencyTarget> latency{};  // whose ranks are chosen by ranks_by_latency() (compress/ranks/latency_ranks.h)
  std::string per = "matched";  // what params and macs are a fraction of: layer | matched | network
  std::int64_t multiple_of = 1;  // ranks that are multiples of 16 pay on CPUs with 16 float lanes
  int kinds() const {
    return !explicit_ranks.empty() + params.has_value() + macs.has_value() + by_spectra() + latency.has_value();
  }
  int by_spectra() const { return energy.has_value() + error.has_value() + vbmf.has_value(); }
  void fields(Fields& f);
  void rule_fields(Fields& f);  // of a rule among others: without latency, which is of the whole network
};
std::string to_string(const RankConfig& config);  // "macs 0.4 per matched", "energy 0.9", "error 0.1", "vbmf 0.8", "out 32 in 64"

// Why the format cannot be asked for ranks in this way: its ranks lower no MACs, or no spectra say what they discard, or the
// explicit ranks do not name those that it needs. "" where it can.
std::string why_not_ranks_of(const Format& format, const RankConfig& config);

// What rank selection knows of one layer, which the format can hold. Spectra are needed for all but explicit ranks.
struct RankLayer {
  const Format* format = nullptr;
  DenseLayer dense;
  std::vector<std::vector<double>> spectra = {};  // one for each rank: singular values, descending
};

struct RankChoice {
  std::optional<Ranks> ranks;  // empty: the layer stays dense
  std::string reason;  // why it stays dense
};

// Costs of what selection cannot change, in the unit that the fraction is of.
struct FixedCost {
  std::int64_t matched = 0;  // matched layers that cannot be factored: in the total of `matched` and `network`
  std::int64_t other = 0;  // every other layer: in the total of `network`
};

// What a rule chooses for some layers, beside others that it is compared with.
struct RuleChoice {
  std::string rule;  // "energy 0.9"
  std::vector<std::string> ranks{};  // of each layer; "dense"
  double parameters_kept = 1;  // of these layers
  double macs_kept = 1;
  void fields(Fields& f);
};

// One for each rule that the formats of all layers take and that can be met. Every layer needs its spectra.
std::vector<RuleChoice> compare_rules(std::span<const RankConfig> rules, std::span<const RankLayer> layers);

// What is wrong with the explicit ranks for any of the layers, which it names; rank by rank, as the file has them.
std::vector<RankProblem> explicit_rank_problems(const RankConfig& config, std::span<const RankLayer> layers);

// Nearest multiple of multiple_of, at least that, at most the mode's size.
std::int64_t round_rank(std::int64_t rank, std::int64_t size, std::int64_t multiple_of);

// Squared singular values that a rank discards, as a fraction of all.
double discarded_energy(std::span<const double> spectrum, std::int64_t rank);

// Smallest rank whose squared singular values sum to at least `energy` of all of them; 1 for a zero spectrum.
std::int64_t energy_rank(std::span<const double> spectrum, double energy);

// One choice for each layer. A layer whose factored cost (parameters for `params` and of forms whose ranks lower nothing else
// (Format::lowers_macs), MACs otherwise) is not below its dense cost stays dense and counts so. For fractions, all layers of a
// total share one energy threshold, found by bisection; then, while the total allows, the rank that discards most is raised. The
// total never exceeds the fraction asked for. Ranks that do not go together (Format::rank_problems) are lowered to ones that do.
// Where ranks are chosen by latency, and nothing may be timed, the smallest stand for them. Throws ConfigError on explicit ranks
// that are not legal (layer, size, legal range) and on fractions below what the smallest ranks give (naming the smallest that can
// be reached).
std::vector<RankChoice> select_ranks(const RankConfig& config, std::span<const RankLayer> layers, FixedCost fixed = {});

}  // namespace tessera
