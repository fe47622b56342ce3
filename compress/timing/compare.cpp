#include "compress/timing/compare.h"

#include "core/device/constant_weights.h"
#include "layers/tied_linear.h"

namespace tessera {
namespace {

constexpr int kWarmUp = 5;

Turns turns_of(const TimingOptions& options) { return {.device = options.device, .warm_up = kWarmUp, .rounds = options.rounds}; }

PairedTimes in_turn(const Contender& dense, const Contender& compressed, const TimingOptions& options) {
  const Contender contenders[]{dense, compressed};
  Timings timings = time_in_turn(contenders, turns_of(options));
  return {.dense = std::move(timings.ms[0]), .compressed = std::move(timings.ms[1]), .replayed = timings.replayed};
}

// Leaves them as they were.
PairedTimes time_modules(Module& dense, Module& compressed, const TimedWork& work, const TimingOptions& options) {
  const Untouched dense_state(dense);
  const Untouched compressed_state(compressed);
  return in_turn({.run = [&] { work.run(dense); }}, {.run = [&] { work.run(compressed); }}, options);
}

DenseTimes time_module(Module& module, const TimedWork& work, const TimingOptions& options) {
  const Untouched state(module);
  const Contender contender{.run = [&] { work.run(module); }};
  Timings timings = time_in_turn({&contender, 1}, turns_of(options));
  return {.dense = std::move(timings.ms.front()), .replayed = timings.replayed};
}

// Exchanges the layers of a tree for those that it keeps, again and again. Leaves the tree as it was.
class Exchange {
 public:
  Exchange(std::unique_ptr<Module>& root, std::span<Replaced> replaced) : root_(root), replaced_(replaced) {}
  ~Exchange() { show(/*dense=*/false); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void show(bool dense) {
    if (dense == dense_) return;
    for (Replaced& layer : replaced_) layer.dense = replace_module(root_, layer.path, std::move(layer.dense));
    dense_ = dense;
  }

 private:
  std::unique_ptr<Module>& root_;
  std::span<Replaced> replaced_;
  bool dense_ = false;
};

}  // namespace

Speed speed_of(const PairedTimes& times) {
  std::vector<double> ratios(times.dense.size());
  for (std::size_t round = 0; round < ratios.size(); ++round) ratios[round] = times.dense[round] / times.compressed[round];
  const MedianInterval ratio = median_interval(std::move(ratios));
  return {.dense_ms = quantile(times.dense, 0.5),
          .compressed_ms = quantile(times.compressed, 0.5),
          .ratio = ratio,
          .faster = ratio.low > kFasterRatio};
}

PairedTimes time_layer(Module& dense, Module& compressed, const Shape& input, bool input_gradient, const TimingOptions& options) {
  const TimedWork work(dense, input, options.work(input_gradient));
  if (!options.on_folded_copies()) return time_modules(dense, compressed, work, options);
  const ConstantWeights constant;
  return time_modules(*options.folded(dense), *options.folded(compressed), work, options);
}

PairedTimes time_network(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input,
                         const TimingOptions& options) {
  const TimedWork work(*root, input, options.work(/*input_gradient=*/false));
  if (options.on_folded_copies()) {
    const auto copy = [&](bool dense) {
      Exchange exchange(root, replaced);
      exchange.show(dense);
      return options.folded(*root);
    };
    const ConstantWeights constant;
    return time_modules(*copy(true), *copy(false), work, options);
  }
  std::vector<std::unique_ptr<Untouched>> states;
  states.push_back(std::make_unique<Untouched>(*root));
  for (const Replaced& layer : replaced) states.push_back(std::make_unique<Untouched>(*layer.dense));
  Exchange exchange(root, replaced);
  const auto run = [&] { work.run(*root); };
  return in_turn({.run = run, .prepare = [&] { exchange.show(true); }}, {.run = run, .prepare = [&] { exchange.show(false); }},
                 options);
}

DenseTimes time_dense(Module& module, const Shape& input, bool input_gradient, const TimingOptions& options) {
  const TimedWork work(module, input, options.work(input_gradient));
  if (!options.on_folded_copies()) return time_module(module, work, options);
  const ConstantWeights constant;
  // A tied layer has nothing to fold, and a copy of it alone would miss the table that it reads elsewhere in the network.
  if (!why_shared(module).empty()) return time_module(module, work, options);
  return time_module(*options.folded(module), work, options);
}

}  // namespace tessera
