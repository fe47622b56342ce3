#include "compress/timing/layer_times.h"

#include <algorithm>

#include "core/support/profile.h"
#include "layers/compressed.h"

namespace tessera {
namespace {

// Operations are counted in a run, not computed from shapes, because frozen parameters and inputs need no gradient.
std::int64_t flops_of(Module& module, const Shape& input, bool input_gradient, const TimingOptions& options) {
  const Untouched state(module);
  const TimedWork work(module, input, options.work(input_gradient));
  work.run(module);  // first, because choices by a clock run the layer several times
  Profile profile;
  {
    const ProfileScope scope(profile);
    work.run(module);
  }
  std::int64_t flops = 0;
  for (const ProfileRow& row : profile.rows()) flops += row.work.flops;
  return flops;
}

// The MACs of a sample's forward. In decode, those of its last position.
std::int64_t macs_of(const Module& module, const Shape& input, Phase phase) {
  const std::int64_t all = total_cost(module, input).macs;
  if (phase != Phase::decode || input[1] == 1) return all;
  Shape in_front = input;
  in_front.set(1, input[1] - 1);
  return all - total_cost(module, in_front).macs;
}

TimedSide side_of(Module& module, const Shape& input, bool input_gradient, const TimingOptions& options) {
  return {.kind = std::string(module.kind()),
          .macs = macs_of(module, input, options.phase),
          .flops = flops_of(module, input, input_gradient, options),
          .ms = {}};
}

void set_times(LayerTiming& row, const DenseTimes& times, Disturbance& disturbance) {
  disturbance += times.disturbance;
  row.replayed = times.replayed;
  row.dense.ms = summarise(times.dense);
}

LayerTiming time_one(Module& layer, Module* dense, const Shape& input, bool input_gradient, const TimingOptions& options,
                     Disturbance& disturbance) {
  LayerTiming row;
  row.path = layer.path();
  row.dense = side_of(dense != nullptr ? *dense : layer, input, input_gradient, options);
  if (dense == nullptr) {
    set_times(row, time_dense(layer, input, input_gradient, options), disturbance);
    return row;
  }
  row.compressed = side_of(layer, input, input_gradient, options);
  const PairedTimes times = time_layer(*dense, layer, input, input_gradient, options);
  disturbance += times.disturbance;
  row.replayed = times.replayed;
  row.dense.ms = summarise(times.dense);
  row.compressed->ms = summarise(times.compressed);
  row.speedup = speed_of(times).ratio;
  return row;
}

// The network's work is the sum of its layers' work.
LayerTiming time_whole(std::unique_ptr<Module>& root, std::span<Replaced> replaced, std::span<const LayerTiming> layers,
                       const Shape& input, const TimingOptions& options, Disturbance& disturbance) {
  LayerTiming row{.path = {}, .dense = {.kind = "network", .ms = {}}, .compressed = {}, .speedup = {}};
  TimedSide compressed = row.dense;
  for (const LayerTiming& layer : layers) {
    const TimedSide& as_it_is = layer.compressed ? *layer.compressed : layer.dense;
    row.dense.macs += layer.dense.macs;
    row.dense.flops += layer.dense.flops;
    compressed.macs += as_it_is.macs;
    compressed.flops += as_it_is.flops;
  }
  if (replaced.empty()) {
    set_times(row, time_dense(*root, input, /*input_gradient=*/false, options), disturbance);
    return row;
  }
  const PairedTimes times = time_network(root, replaced, input, options);
  disturbance += times.disturbance;
  row.replayed = times.replayed;
  row.dense.ms = summarise(times.dense);
  compressed.ms = summarise(times.compressed);
  row.compressed = std::move(compressed);
  row.speedup = speed_of(times).ratio;
  return row;
}

}  // namespace

std::vector<Replaced> dense_twins(Module& root) {
  std::vector<Replaced> twins;
  for_each_module(root, [&](Module& module) {
    if (const CompressedLayer* compressed = as_compressed(module)) twins.push_back({module.path(), compressed->to_dense()});
  });
  return twins;
}

std::vector<LayerTiming> time_layers(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input,
                                     const TimingOptions& options) {
  Trace trace;
  root->output_shape(input, &trace);
  TimingOptions of_layers = options;
  of_layers.from_memory = layers_from_memory(*root, options);
  std::vector<LayerTiming> rows;
  Disturbance disturbance;
  bool input_gradient = false;
  for (const LayerCost& cost : trace) {
    const auto twin = std::ranges::find(replaced, cost.path, &Replaced::path);
    Module* const dense = twin == replaced.end() ? nullptr : twin->dense.get();
    rows.push_back(time_one(find_module(*root, cost.path), dense, cost.input, input_gradient, of_layers, disturbance));
    input_gradient = input_gradient || cost.parameters > 0;
  }
  rows.push_back(time_whole(root, replaced, rows, input, options, disturbance));
  warn_of(disturbance, "the layers");
  for (LayerTiming& row : rows) row.network_share = row.dense.ms.median / rows.back().dense.ms.median;
  return rows;
}

}  // namespace tessera
