// Times modules against each other: what one run of a module is, and networks in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "compress/timing/clock.h"
#include "compress/timing/summary.h"
#include "compress/timing/timed_at.h"
#include "core/nn/attention_cache.h"
#include "core/nn/module.h"

namespace tessera {

struct WorkOptions {
  Phase phase = Phase::inference;
  // In training the input's gradient is computed too, as for every layer but a network's first.
  bool input_gradient = false;
  DType compute = DType::f32;  // what activations are in
  Device device = {};  // where the modules are
  bool recompute = false;  // in training, as in Context
};

// The work that one run of a module is: a batch of normally distributed input, and in training a gradient of its output, both of
// the dtype that it computes in. Where it reads whole numbers (Module::input_limit), all of them are equally likely, and have no
// gradient. In decode `input` is [n, positions, ...], as a network that decodes gives to each of its layers (layers/decoding.h),
// and the work is the last position's.
class TimedWork {
 public:
  TimedWork(const Module& module, const Shape& input, const WorkOptions& options);
  // Leaves gradients behind, and moves batch-norm statistics, in training: see Untouched. In decode the first run of each module
  // fills a cache of its own, which lives as long as this; no kernel is chosen by a clock for that.
  void run(Module& module) const;

 private:
  void run_inference(Module& module, AttentionCache* cache) const;
  void run_training(Module& module) const;
  AttentionCache& cache_of(Module& module) const;

  Phase phase_;
  std::int64_t length_ = 0;  // in decode: positions of a sequence
  Tensor x_;
  Tensor in_front_;  // in decode: of the positions in front of x_; undefined where there is none
  Tensor grad_y_;  // in training
  bool input_gradient_ = false;
  DType compute_;
  bool recompute_;
  StepState step_;
  mutable std::map<const Module*, AttentionCache> caches_;
};

// Puts a module's buffers back at the end of the scope and drops its gradients: training on the clock is no step.
class Untouched {
 public:
  explicit Untouched(Module& module);
  ~Untouched();
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

 private:
  Module& module_;
  std::vector<Tensor> buffers_;
};

constexpr std::int64_t kRunsAlone = 7;

struct PairedTiming {
  std::vector<Summary> networks;  // milliseconds per batch
  // Median over the rounds of time(first network) / time(network i), with p10 and p90. 1 for the first.
  std::vector<Summary> speedup;
  // As a control: each network's median of kRunsAlone runs in a row, or fewer rounds, before the turns.
  std::vector<double> alone;
  bool replayed = false;  // as Timings say

  // The speed-up of a network by the two medians. A claim counts the lower of this and the median of the ratios.
  double of_medians(std::size_t network) const { return networks.front().median / networks.at(network).median; }
};

// One random batch of the input shape: inference or decode, with what kernels derive from weights kept from call to call, or a
// forward and a backward in training, which leaves the networks as they were. Warms up each network, times each alone, then all
// in turn, `repeats` rounds.
PairedTiming time_networks(std::span<Module* const> networks, const Shape& input, std::int64_t repeats,
                           const WorkOptions& options = {});

}  // namespace tessera
