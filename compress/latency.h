// Times modules against each other in one process: interleaved, so that the machine's drift hits all alike.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/module.h"
#include "core/summary.h"

namespace tessera {

// inference: a forward that records nothing. training: a forward in training mode and the backward sweep, gradients of the input
// included.
enum class Phase { inference, training };
std::string_view name_of(Phase phase);
// "batch 32, inference, 2 threads", or "folded inference", with ", bf16" unless it is f32; always so: keys of recorded timings
// end in it.
std::string where_timed(std::int64_t batch, Phase phase, std::int64_t threads, bool folded = false,
                        DType compute = DType::f32);

// One of several that are timed in turn.
struct Contender {
  std::function<void()> run;
  std::function<void()> prepare = {};  // before each run, not timed; may be empty
};

// Milliseconds of each round's run, by contender. The first `warm_up` rounds are not kept: algorithms are chosen in them.
std::vector<std::vector<double>> time_in_turn(std::span<const Contender> contenders, int warm_up, std::int64_t rounds);

// The work that one run of a module is: a batch of normally distributed input, and in training a gradient of its output, both of
// the dtype that it computes in.
class TimedWork {
 public:
  // input_gradient: in training the input's gradient is computed too, as for every layer but a network's first.
  TimedWork(const Module& module, const Shape& input, Phase phase, bool input_gradient, DType compute = DType::f32);
  // Leaves gradients behind, and moves batch-norm statistics, in training: see Untouched.
  void run(Module& module) const;

 private:
  Tensor x_;
  Tensor grad_y_;  // undefined for inference
  bool input_gradient_;
  StepState step_;
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

struct PairedTiming {
  std::vector<Summary> networks;  // milliseconds per batch
  // Median over the rounds of time(first network) / time(network i), with p10 and p90. 1 for the first.
  std::vector<Summary> speedup;
};

// Inference on one random batch of the input shape, with what kernels derive from weights kept from call to call. Warms up each
// network, then times them in turn, `repeats` rounds.
PairedTiming time_networks(std::span<Module* const> networks, const Shape& input, std::int64_t repeats,
                           DType compute = DType::f32);

}  // namespace tessera
