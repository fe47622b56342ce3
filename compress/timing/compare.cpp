#include "compress/timing/compare.h"

#include "core/cpu/cache_sweep.h"
#include "core/cpu/machine_memory.h"
#include "core/device/constant_weights.h"
#include "core/support/error.h"
#include "layers/tied_linear.h"

namespace tessera {
namespace {

constexpr int kWarmUp = 5;

constexpr std::int64_t kLeastBatches = 6;  // fewer batches give no 95 % interval

Turns turns_of(const TimingOptions& options) {
  return {.device = options.device, .warm_up = kWarmUp, .rounds = options.sampling.rounds, .batches = options.sampling.batches};
}

// The ratios of the batches first <= batch < last. If that is one batch, the ratios of its rounds.
std::vector<double> ratios_of(const PairedTimes& times, std::int64_t first, std::int64_t last) {
  const auto ratio = [&](std::int64_t round) {
    return times.dense[static_cast<std::size_t>(round)] / times.compressed[static_cast<std::size_t>(round)];
  };
  const std::int64_t rounds = times.sampling.rounds;
  std::vector<double> ratios;
  for (std::int64_t batch = first; batch < last; ++batch) {
    std::vector<double> of_batch;
    for (std::int64_t round = batch * rounds; round < (batch + 1) * rounds; ++round) of_batch.push_back(ratio(round));
    if (last - first == 1) return of_batch;
    ratios.push_back(median_ratio(std::move(of_batch)));
  }
  return ratios;
}

PairedTimes in_turn(const Contender& dense, const Contender& compressed, const TimingOptions& options) {
  const Contender contenders[]{dense, compressed};
  Timings timings = time_in_turn(contenders, turns_of(options));
  return {.dense = std::move(timings.ms[0]),
          .compressed = std::move(timings.ms[1]),
          .sampling = options.sampling,
          .replayed = timings.replayed,
          .disturbance = timings.disturbance};
}

// What runs before each run of a layer: nothing, or a sweep of the caches.
std::function<void()> preparation(const TimingOptions& options) {
  if (!options.from_memory) return {};
  return [sweep = std::make_shared<cpu::CacheSweep>(/*wanted=*/true)] { (*sweep)(); };
}

// Leaves the modules as they were. `prepare` runs before each run.
PairedTimes time_modules(Module& dense, Module& compressed, const TimedWork& work, const TimingOptions& options,
                         const std::function<void()>& prepare) {
  const Untouched dense_state(dense);
  const Untouched compressed_state(compressed);
  return in_turn({.run = [&] { work.run(dense); }, .prepare = prepare},
                 {.run = [&] { work.run(compressed); }, .prepare = prepare}, options);
}

DenseTimes time_module(Module& module, const TimedWork& work, const TimingOptions& options) {
  const Untouched state(module);
  const Contender contender{.run = [&] { work.run(module); }, .prepare = preparation(options)};
  Timings timings = time_in_turn({&contender, 1}, turns_of(options));
  return {.dense = std::move(timings.ms.front()), .replayed = timings.replayed, .disturbance = timings.disturbance};
}

// Swaps layers of a tree with the dense ones in `replaced`, back and forth. Leaves the tree as it was.
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

Sampling Sampling::told_in(std::int64_t rounds) {
  const Sampling usual;
  const std::int64_t batches = (rounds + usual.rounds - 1) / usual.rounds;
  if (batches < kLeastBatches) return {.rounds = rounds, .batches = 1, .told = 0};
  return {.rounds = usual.rounds, .batches = batches, .told = 0};
}

namespace {

MedianInterval deciding_ratio(const PairedTimes& times) { return ratio_interval(ratios_of(times, 0, times.sampling.deciding())); }

}  // namespace

bool is_undecided(const PairedTimes& times) {
  if (times.sampling.told == 0) return false;
  const MedianInterval ratio = deciding_ratio(times);
  return ratio.low <= kFasterRatio && ratio.high > kFasterRatio;
}

PairedTimes joined(const PairedTimes& first, const PairedTimes& second) {
  PairedTimes both{
      .dense = {}, .compressed = {}, .sampling = first.sampling, .replayed = first.replayed, .disturbance = first.disturbance};
  both.disturbance += second.disturbance;
  both.sampling.batches += second.sampling.batches;
  both.sampling.told += second.sampling.told;
  const auto append = [&](std::vector<double> PairedTimes::*side, const PairedTimes& from, bool told) {
    const std::vector<double>& all = from.*side;
    const auto split = all.begin() + from.sampling.deciding() * from.sampling.rounds;
    (both.*side).insert((both.*side).end(), told ? split : all.begin(), told ? all.end() : split);
  };
  for (const auto side : {&PairedTimes::dense, &PairedTimes::compressed}) {
    for (const bool told : {false, true}) {
      append(side, first, told);
      append(side, second, told);
    }
  }
  return both;
}

Speed speed_of(const PairedTimes& times) {
  const Sampling& sampling = times.sampling;
  TESSERA_CHECK(sampling.told < sampling.batches, InternalError, "timing: ", sampling.told, " of ", sampling.batches,
                " batches are told, so none decides");
  const std::int64_t first_told = sampling.told > 0 ? sampling.deciding() : 0;
  const auto median_told = [&](const std::vector<double>& ms) {
    return quantile({ms.begin() + first_told * sampling.rounds, ms.end()}, 0.5);
  };
  return {.dense_ms = median_told(times.dense),
          .compressed_ms = median_told(times.compressed),
          .ratio = ratio_interval(ratios_of(times, first_told, sampling.batches)),
          .faster = deciding_ratio(times).low > kFasterRatio};
}

bool layers_from_memory(Module& network, const TimingOptions& options) {
  if (options.phase != Phase::decode || !options.device.is_cpu()) return false;
  std::int64_t weights = 0;
  for (const NamedParameter& entry : named_parameters(network)) weights += entry.parameter->value().numel();
  return cpu::exceeds_caches(weights * static_cast<std::int64_t>(size_of(options.compute)));
}

PairedTimes time_layer(Module& dense, Module& compressed, const Shape& input, bool input_gradient, const TimingOptions& options) {
  const TimedWork work(dense, input, options.work(input_gradient));
  const std::function<void()> prepare = preparation(options);
  if (!options.on_folded_copies()) return time_modules(dense, compressed, work, options, prepare);
  const ConstantWeights constant;
  return time_modules(*options.folded(dense), *options.folded(compressed), work, options, prepare);
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
    return time_modules(*copy(true), *copy(false), work, options, /*prepare=*/{});
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
  // A tied layer has nothing to fold, and a copy of it alone would lack the table that it reads from another module.
  if (!why_shared(module).empty()) return time_module(module, work, options);
  return time_module(*options.folded(module), work, options);
}

}  // namespace tessera
