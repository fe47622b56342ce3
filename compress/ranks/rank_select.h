// Tucker-2 ranks for a set of convolutions: by number, by kept energy, or by the fraction of parameters or MACs that is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "layers/tucker2_conv2d.h"

namespace tessera {

// How ranks are asked for: exactly one of {out, in}, params, macs, energy.
struct RankConfig {
  std::optional<std::int64_t> out{}, in{};
  std::optional<double> params{}, macs{};  // fraction kept
  std::optional<double> energy{};  // kept squared singular values of each mode, as a fraction
  std::string per = "matched";  // what params and macs are a fraction of: layer | matched | network
  std::int64_t multiple_of = 1;  // ranks that are multiples of 16 pay on CPUs with 16 float lanes
  int kinds() const { return (out || in) + params.has_value() + macs.has_value() + energy.has_value(); }
  void fields(Fields& f);
};
std::string to_string(const RankConfig& config);  // "macs 0.4 per matched", "energy 0.9", "out 32 in 64"

// What rank selection knows of one convolution. Spectra are needed for all but explicit ranks.
struct RankLayer {
  std::string path;
  std::int64_t out = 1, in = 1;
  std::int64_t taps = 1;  // kh * kw
  std::int64_t input_pixels = 1, output_pixels = 1;  // per sample
  std::int64_t bias = 0;  // bias parameters: kept dense or factored
  std::vector<double> out_spectrum, in_spectrum;  // singular values of the weight's mode unfoldings, descending

  std::int64_t dense_parameters() const { return out * in * taps + bias; }
  std::int64_t dense_macs() const { return out * in * taps * output_pixels; }
  // A mode of full rank has no factor.
  std::int64_t in_factor(Tucker2Ranks r) const { return r.in < in ? r.in * in : 0; }
  std::int64_t out_factor(Tucker2Ranks r) const { return r.out < out ? r.out * out : 0; }
  std::int64_t tucker_parameters(Tucker2Ranks r) const { return in_factor(r) + taps * r.in * r.out + out_factor(r) + bias; }
  std::int64_t tucker_macs(Tucker2Ranks r) const {
    return input_pixels * in_factor(r) + output_pixels * (taps * r.in * r.out + out_factor(r));
  }
};

struct RankChoice {
  std::optional<Tucker2Ranks> ranks;  // empty: the layer stays dense
  std::string reason;  // why it stays dense
};

// Costs of what selection cannot change, in the unit that the fraction is of.
struct FixedCost {
  std::int64_t matched = 0;  // matched layers that cannot be factored: in the total of `matched` and `network`
  std::int64_t other = 0;  // every other layer: in the total of `network`
};

// Nearest multiple of multiple_of, at least that, at most the mode's size.
std::int64_t round_rank(std::int64_t rank, std::int64_t size, std::int64_t multiple_of);

// Smallest rank whose squared singular values sum to at least `energy` of all of them; 1 for a zero spectrum.
std::int64_t energy_rank(std::span<const double> spectrum, double energy);

// One choice for each layer. A layer whose factored cost (parameters for `params`, MACs otherwise) is not below its dense cost
// stays dense and counts so. For fractions, all layers of a total share one energy threshold, found by bisection; then, while
// the total allows, the mode that discards most gets the next rank. The total never exceeds the fraction asked for.
// Throws ConfigError on explicit ranks out of range (layer, mode size, legal range) and on fractions below what the smallest
// ranks give (naming the smallest that can be reached).
std::vector<RankChoice> select_ranks(const RankConfig& config, std::span<const RankLayer> layers, FixedCost fixed = {});

}  // namespace tessera
