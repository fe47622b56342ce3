// Dense layers and networks on the clock against their compressed selves, in turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/timing/clock.h"
#include "compress/timing/latency.h"
#include "compress/timing/speed.h"

namespace tessera {

// A layer of a tree that stands in the place of a dense one.
struct Replaced {
  std::string path;
  std::unique_ptr<Module> dense;
  std::optional<Speed> speed = {};  // of the layer alone, where a veto timed it
};

// How often a comparison reads the clock. Rounds that follow each other are alike, so what counts is batches of a few rounds that
// lie apart in time (compress/timing/clock.h).
struct Sampling {
  std::int64_t rounds = 4;  // of a batch
  std::int64_t batches = 16;
  // How many of the batches, the last ones, are reported. Those before them decide: a layer that looked fast by chance in the
  // rounds that chose it is then not reported with that speed. 0: all batches decide, and all are reported.
  std::int64_t told = 6;

  // At least as many rounds, all of them reported. Up to 20 rounds are one batch.
  static Sampling told_in(std::int64_t rounds);
  std::int64_t all_rounds() const { return rounds * batches; }
  std::int64_t deciding() const { return batches - told; }
};

// Milliseconds of each round's run.
struct PairedTimes {
  std::vector<double> dense;
  std::vector<double> compressed;
  Sampling sampling;  // in which they were taken
  bool replayed = false;  // this and the next as in Timings
  Disturbance disturbance = {};
};
struct DenseTimes {
  std::vector<double> dense;
  bool replayed = false;
  Disturbance disturbance = {};
};

// `faster` means: over the batches that decide, the lower end of the 95 % confidence interval of the median of their median
// ratios is above kFasterRatio. The times, the ratio and its interval are over the batches that are reported. With one batch all
// of this is over its rounds.
Speed speed_of(const PairedTimes& times);

// Whether the interval of the batches that decide holds kFasterRatio: more batches may tell on which side of it the ratio lies.
// False where all batches are told.
bool is_undecided(const PairedTimes& times);
// Joins two timings of the same sampling: the batches that decide of both, then the batches that are reported of both.
PairedTimes joined(const PairedTimes& first, const PairedTimes& second);

struct TimingOptions {
  Phase phase = Phase::inference;
  DType compute = DType::f32;  // what activations are in
  Device device = {};  // where the modules are
  bool recompute = false;  // in training, as in Context
  Sampling sampling = {};
  bool from_memory = false;  // before each run of time_layer() and time_dense() other bytes fill the CPU's caches
  // What inference and decode with a module are timed on: a copy with its batch norms folded, for dense and compressed alike, and
  // with what kernels derive from weights kept from call to call. Empty: the module as it is, as always in training.
  std::function<std::unique_ptr<Module>(const Module&)> folded = {};

  bool on_folded_copies() const { return phase != Phase::training && folded; }
  // `input_gradient`: in training the input's gradient is computed too.
  WorkOptions work(bool input_gradient) const {
    return {.phase = phase, .input_gradient = input_gradient, .compute = compute, .device = device, .recompute = recompute};
  }
};

// Whether layers of this network are to be timed from memory: in decode on the CPU, where its weights, in the dtype that it
// computes in, are more than the last cache holds. A token then reads every layer's weights from memory. A timing that repeats
// one layer finds them in a cache, where a dense layer loses less time than it does in the network.
bool layers_from_memory(Module& network, const TimingOptions& options);

// A layer alone, on a batch of its own input's shape; in decode that of whole sequences, as for TimedWork. `input_gradient`: in
// training, as WorkOptions say.
PairedTimes time_layer(Module& dense, Module& compressed, const Shape& input, bool input_gradient, const TimingOptions& options);

// A whole network: once with the dense layers in their places, once with the layers that it has. Leaves tree and `replaced` as
// they were.
PairedTimes time_network(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input,
                         const TimingOptions& options);

// The same of a layer or network that has no compressed self.
DenseTimes time_dense(Module& module, const Shape& input, bool input_gradient, const TimingOptions& options);

}  // namespace tessera
