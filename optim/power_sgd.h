// Gradients of low rank: PowerSGD (Vogels, Karimireddy and Jaggi, NeurIPS 2019, "PowerSGD: Practical Low-Rank Gradient
// Compression for Distributed Optimization", algorithms 1 and 2). A gradient G of n x m, with what was left of earlier ones, M =
// G + E, becomes
//   P = orthogonalise(M Q), Q = M' P, G = P Q', E = M - G,
// a step of subspace iteration from the Q before. Between ranks the sums of M Q and M' P go in place of the sum of G: r (n + m)
// numbers in place of n m. Each rank keeps the E of its own M.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/comm/communicator.h"
#include "core/config/fields.h"
#include "core/nn/module.h"
#include "core/nn/state.h"

namespace tessera {

struct PowerSgdConfig {
  std::int64_t rank = 4;
  void fields(Fields& f);
};

// Throws ConfigError unless the device is the CPU.
void check_power_sgd(Device device);

class PowerSgd {
 public:
  static constexpr std::string_view kMessages = "power_sgd ";  // what the names of its sums begin with

  // What it is given outlives it. Throws what check_power_sgd() throws.
  PowerSgd(const PowerSgdConfig& config, Communicator& ranks, std::span<const NamedParameter> parameters, std::uint64_t seed);

  // Whether sum() takes the gradient of this parameter. It does where the parameter has two dimensions or more, [out, everything
  // else], and less than half as much is sent.
  bool takes(std::size_t parameter) const { return at_[parameter] != kNone; }
  // Gradients become their sums over the ranks, of the rank asked for; the same bytes on every rank. Collective. Throws
  // NumericError on a NaN or Inf.
  void sum();

  // Brings what is left of every rank's gradients to rank 0, for its state(): until the next sum(). Collective.
  void gather();
  State factors() const;  // "factor/<path>": the same on every rank
  // factors(), and "error/<rank>/<path>" of every rank. To be called after gather() where there are several ranks.
  State state() const;
  // A state of as many ranks: each goes on with its own errors. A state of another number: rank 0 goes on with the errors' sum.
  void load_state(const State& state);

 private:
  struct Compressed {
    std::size_t parameter;
    Tensor factor;  // Q [m, r]
    Tensor error;  // E [n, m]
  };

  void all_reduce(std::span<Compressed* const> of, std::span<const Tensor> factors) const;

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Communicator& ranks_;
  std::span<const NamedParameter> parameters_;
  std::vector<std::size_t> at_;  // in all_, by parameter
  std::vector<Compressed> all_;
  std::vector<std::vector<Tensor>> gathered_;  // errors by rank; on rank 0, behind gather()
};

}  // namespace tessera
