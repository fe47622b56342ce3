// The ways in which a compressed layer can compute: its factors one after the other, in one order or another, or the weight that
// they compose. All give the same values up to rounding. Which is the fastest depends on the layer, the batch, the phase and the
// machine, so a clock decides, and the choice is recorded (core/device/decisions.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/var.h"
#include "core/nn/module.h"

namespace tessera {

struct Ways {
  std::vector<std::string> names;  // the first is taken where no clock decides
  double flops = 0;  // of the dense layer's forward, or the first way's; below kLeastFlopsToMeasure no clock is read
  // The layer's result in way i, without its bias. operands: x, then the factors.
  std::function<Var(std::size_t i, std::span<const Var> operands)> run;
};

// The choices for one layer. Training is timed with its backward.
class Execution {
 public:
  // The index of the way to take for these operands; `ways` is called where that is not known yet. `recompute` as in Context.
  std::size_t choose(const Module& layer, std::span<const Var> operands, bool recompute, const std::function<Ways()>& ways);

 private:
  struct Case {
    Shape x;
    DType dtype;
    bool training, constant, tf32, recompute;
    std::vector<bool> frozen;  // operands that need no gradient, in training
    std::uint64_t epoch;  // of the decisions in force
    friend bool operator==(const Case&, const Case&) = default;
  };
  struct Known {
    Case of;
    std::size_t way;
  };
  static std::string key_of(const Module& layer, const Case& of, Device device);

  std::vector<Known> known_;  // of the newest epoch
};

// f(operands, bias), where the bias may be undefined. With `recompute` nothing between is kept for the backward
// (core/autograd/recompute.h).
Var run_kept_or_recomputed(bool recompute, std::vector<Var> operands, const Var& bias,
                           const std::function<Var(std::span<const Var> operands, const Var& bias)>& f);

// Returns what `make` makes. While weights are constant (core/device/constant_weights.h) and nothing is recorded, it is made
// only once for `user`; `first` is the value of one of the parameters that it is made from.
Var made_once(const std::shared_ptr<const void>& user, const Tensor& first, const std::function<Var()>& make);

}  // namespace tessera
