// One compressed form of a layer's weight: all that the rest of the program knows of it. A form is a file pair of this folder and
// a layer of layers/; compress/formats/builtin.h lists them. Selection, passes, timing, import, export and reports ask here and
// of CompressedLayer (layers/compressed.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "core/nn/module.h"
#include "core/support/extent.h"
#include "layers/ranks.h"

namespace tessera {

// A dense layer as formats see it: a weight [out, kh, kw, in / groups], of one tap for a linear layer's [out, in] and a table's
// [vocabulary, width], and how often it is applied to one sample.
struct DenseLayer {
  const Module* module = nullptr;
  std::string path;
  std::int64_t out = 1, in = 1;
  Extent kernel{1, 1};
  std::int64_t groups = 1;
  bool bias = false;
  bool looked_up = false;  // a table: no product of it is computed; a selector takes it by its whole path alone
  Extent input{1, 1}, output{1, 1};  // pixels of an image, {rows, 1} of a sequence; 1x1 for a vector

  std::int64_t taps() const { return kernel.h * kernel.w; }
  std::int64_t weights() const { return out * taps() * (in / groups); }
  std::int64_t bias_parameters() const { return bias ? out : 0; }
  std::int64_t parameters() const { return weights() + bias_parameters(); }
  std::int64_t input_positions() const { return input.h * input.w; }
  std::int64_t output_positions() const { return output.h * output.w; }
  std::int64_t macs() const { return looked_up ? 0 : weights() * output_positions(); }  // per sample
  const Tensor& weight() const;  // as the module holds it
};

// The layer of a network's trace; empty where the module has no weight of its own that a form could hold: all but conv2d, linear,
// and embeddings whose table no other layer reads.
std::optional<DenseLayer> dense_layer(const Module& module, const LayerCost& row);

// A rank as files write it.
struct RankName {
  std::string_view name;
  std::string_view help;
  std::string_view example;
};

// For forms with one rank.
inline constexpr RankName kSingleRank[]{{"rank", "rank of the weight", "32"}};

// Per sample; bias included.
struct FormatCost {
  std::int64_t parameters = 0;
  std::int64_t macs = 0;
  std::int64_t activations = 0;  // elements between the factors, which a training step stores for its backward
};

// How a decomposition that sweeps over its factors ends, and whether one that is a singular value decomposition is an approximate
// one (core/linalg/randomised_svd.h).
struct ProjectOptions {
  std::int64_t iterations = 100;
  double tolerance = 1e-4;  // a sweep that lowers the relative error by less is the last
  bool randomised = false;
  void fields(Fields& f);  // of the sweeps
};

// How a form that holds channels as several modes splits them.
struct ModesConfig {
  std::optional<std::int64_t> count = {};  // of each side, of sizes as equal as divisors allow; without sizes the form's default
  std::vector<std::int64_t> out = {}, in = {};
  void fields(Fields& f);
};

// In the order that the form's header states. An undefined factor stands for one that changes nothing.
using Factors = std::vector<Tensor>;

class Format {
 public:
  virtual ~Format() = default;

  virtual std::string_view name() const = 0;
  virtual std::span<const std::string_view> kinds() const = 0;  // of the dense layers that it is a form of
  virtual std::span<const RankName> rank_names() const = 0;  // in the order of Ranks
  virtual std::size_t fewest_ranks() const { return rank_names().size(); }  // a layer has at least so many, the first ones
  virtual bool sweeps() const { return false; }  // whether project() reads the options of sweeps
  virtual bool randomises() const { return false; }  // whether it reads `randomised`
  // Whether lower ranks take fewer MACs. A form whose layer runs the dense layer on a composed weight saves parameters alone.
  virtual bool lowers_macs() const { return true; }
  // The form with its channels split so; null where it does not split them.
  virtual std::unique_ptr<Format> with_modes(const ModesConfig&) const { return nullptr; }

  // The form that holds a layer of this kind. The functions below that take a layer or its weight are called on it.
  virtual const Format& for_layer(const Module&) const { return *this; }

  // Why it cannot hold the weight: "has 4 groups; tucker2 needs 1". "" where it can; every function below requires that.
  virtual std::string why_not(const DenseLayer& layer) const = 0;

  // The largest legal value of each rank of the layer where its other ranks are the largest, in the order of rank_names().
  virtual std::vector<std::int64_t> largest_ranks(const DenseLayer& layer) const = 0;
  // What is wrong with the ranks, judged together; none where a layer can have them.
  virtual std::vector<RankProblem> rank_problems(const DenseLayer& layer, const Ranks& ranks) const = 0;
  // Ranks between 1 and the largest, lowered to ones that go together.
  virtual Ranks legal_ranks(const DenseLayer&, Ranks ranks) const { return ranks; }

  // Whether the last axis of the first defined factor runs over the input channels, so that a product of the weight with a matrix
  // on that axis can be undone in that factor.
  virtual bool ends_in_input_channels() const { return false; }

  virtual FormatCost cost(const DenseLayer& layer, const Ranks& ranks) const = 0;
  // For each rank the singular values that it cuts, descending; of a matrix that has all elements of the weight. Where
  // spectra_tell_errors() is false they only weigh layers against each other, for a `macs` or `params` rule.
  virtual std::vector<std::vector<double>> spectra(const Tensor& weight) const = 0;
  virtual bool spectra_tell_errors() const { return true; }

  // The factors of the nearest weight that the form reaches, computed in double, in the weight's dtype. An iteration that has no
  // best start (cp) begins from `start` where there is one. Throws NumericError on NaN or Inf.
  virtual Factors project(const Tensor& weight, const Ranks& ranks, const ProjectOptions& options = {},
                          const Factors* start = nullptr) const = 0;
  virtual Tensor compose(const Factors& factors, const Shape& weight) const = 0;  // in the dense weight's shape

  // The layer that takes the dense one's place, with its bias and trainability. Without factors its weights are zeros. Factors
  // may be on another device than the dense layer: the caller moves what it gets.
  virtual std::unique_ptr<Module> layer(const DenseLayer& dense, const Ranks& ranks, const Factors* factors = nullptr) const = 0;
};

// The value of a rank that `ranks` has.
std::int64_t rank_of(const Ranks& ranks, std::string_view name);

// "conv2d, linear or embedding".
std::string kinds_text(const Format& format);

// Whether the format is one of this module's kind, whatever its ranks.
bool is_form_of(const Format& format, const Module& module);

}  // namespace tessera
