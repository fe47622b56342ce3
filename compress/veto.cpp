#include "compress/veto.h"

#include <omp.h>

#include <algorithm>

#include "core/constant_weights.h"
#include "core/decisions.h"
#include "core/error.h"
#include "core/io/hash.h"

namespace tessera {
namespace {

constexpr int kWarmUp = 5;

Speed compare(std::span<const Contender> dense_and_compressed, std::int64_t rounds) {
  const std::vector<std::vector<double>> times = time_in_turn(dense_and_compressed, kWarmUp, rounds);
  std::vector<double> ratios(times[0].size());
  for (std::size_t round = 0; round < ratios.size(); ++round) ratios[round] = times[0][round] / times[1][round];
  const MedianInterval ratio = median_interval(std::move(ratios));
  return {.dense_ms = quantile(times[0], 0.5),
          .compressed_ms = quantile(times[1], 0.5),
          .ratio = ratio,
          .faster = ratio.low > kFasterRatio};
}

// Leaves them as they were.
Speed compare_modules(Module& dense, Module& compressed, const TimedWork& work, std::int64_t rounds) {
  const Untouched dense_state(dense);
  const Untouched compressed_state(compressed);
  const Contender contenders[]{{.run = [&] { work.run(dense); }}, {.run = [&] { work.run(compressed); }}};
  return compare(contenders, rounds);
}

Shape with_batch(Shape shape, std::int64_t batch) {
  shape.set(0, batch);
  return shape;
}

// With what is trained of it: gradients of frozen weights cost no time.
std::string layer_key(const Module& module) {
  std::string frozen;
  for (const auto& parameter : module.parameters()) {
    if (!parameter->trainable()) frozen += (frozen.empty() ? " frozen " : ",") + parameter->name();
  }
  return str(module.kind(), to_json(module.config()), frozen);
}

// Exchanges the layers of a tree for those that it keeps, again and again. Leaves the tree as it was.
class Exchange {
 public:
  Exchange(std::unique_ptr<Module>& root, std::vector<Replaced>& replaced, std::span<const LayerReport> rows)
      : root_(root), replaced_(replaced), rows_(rows) {}
  ~Exchange() { show(/*dense=*/false); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void show(bool dense) {
    if (dense == dense_) return;
    for (Replaced& layer : replaced_) layer.dense = replace_module(root_, rows_[layer.row].path, std::move(layer.dense));
    dense_ = dense;
  }

 private:
  std::unique_ptr<Module>& root_;
  std::vector<Replaced>& replaced_;
  std::span<const LayerReport> rows_;
  bool dense_ = false;
};

}  // namespace

void KeepForConfig::fields(Fields& f) {
  f.add("batch", batch, {.help = "images; the largest of report.latency.batch when not given", .range = at_least(1),
                         .example = "128", .observable = "report"});
  f.add("phase", phase, {.help = "what has to be faster: a forward, or a forward and a backward",
                         .choices = {"inference", "training"}, .observable = "report"});
}

std::string Veto::where() const {
  const char* const folded = on_folded_copies() ? "folded " : "";
  return str("batch ", options_.batch, ", ", folded, name_of(options_.phase), ", ", omp_get_max_threads(), " threads");
}

std::optional<Speed> Veto::known_or_measured(const std::string& key, const std::string& what,
                                             const std::function<Speed()>& measure) const {
  const std::optional<std::string> text = recall_or_measure(key, [&] {
    if (options_.before_timing) options_.before_timing(what);
    return to_text(measure());
  });
  try {
    if (text) return speed_from(*text);
  } catch (const ConfigError& error) {
    throw ConfigError(str("decisions: ", key, ": ", error.what()));
  }
  TESSERA_CHECK(!options_.only_faster, ConfigError,
                "keep: faster is decided by a clock, which deterministic: true forbids, and no decisions file has ", key,
                "; replay a run's with train --decisions FILE, or set keep: always");
  return std::nullopt;
}

bool Veto::keeps(Module& dense, Module& compressed, const Shape& input, bool first, LayerReport& row) const {
  const Shape batch = with_batch(input, options_.batch);
  const bool no_input_gradient = first && options_.phase == Phase::training;
  const std::string key = str("keep.layer ", layer_key(compressed), " for ", layer_key(dense), " input ", batch, ' ',
                              no_input_gradient ? "first " : "", where());
  row.speed = known_or_measured(key, row.path, [&] {
    const TimedWork work(dense, batch, options_.phase, !no_input_gradient);
    if (!on_folded_copies()) return compare_modules(dense, compressed, work, options_.rounds);
    const ConstantWeights constant;
    return compare_modules(*options_.folded(dense), *options_.folded(compressed), work, options_.rounds);
  });
  if (!row.speed || row.speed->faster) return true;
  row.reason = str("not faster: ", describe(*row.speed), " at ", where());
  return !options_.only_faster;
}

std::optional<Speed> Veto::time_network(std::unique_ptr<Module>& root, std::vector<Replaced>& replaced,
                                        std::span<const LayerReport> rows, const Shape& input) const {
  const Shape batch = with_batch(input, options_.batch);
  std::string layers;
  for_each_module(*root, [&](const Module& module) { layers += str(module.path(), ' ', layer_key(module), '\n'); });
  for (const Replaced& layer : replaced) layers += str(rows[layer.row].path, " for ", layer_key(*layer.dense), '\n');
  const std::string key = str("keep.network ", xxh3_128(layers), " input ", batch, ' ', where());
  return known_or_measured(key, "the network", [&] {
    const TimedWork work(*root, batch, options_.phase, /*input_gradient=*/false);
    if (on_folded_copies()) {
      const auto copy = [&](bool dense) {
        Exchange exchange(root, replaced, rows);
        exchange.show(dense);
        return options_.folded(*root);
      };
      const ConstantWeights constant;
      return compare_modules(*copy(true), *copy(false), work, options_.rounds);
    }
    std::vector<std::unique_ptr<Untouched>> states;
    states.push_back(std::make_unique<Untouched>(*root));
    for (const Replaced& layer : replaced) states.push_back(std::make_unique<Untouched>(*layer.dense));
    Exchange exchange(root, replaced, rows);
    const auto run = [&] { work.run(*root); };
    const Contender contenders[]{{.run = run, .prepare = [&] { exchange.show(true); }},
                                 {.run = run, .prepare = [&] { exchange.show(false); }}};
    return compare(contenders, options_.rounds);
  });
}

std::optional<Speed> Veto::settle(std::unique_ptr<Module>& root, std::vector<Replaced>& replaced, std::span<LayerReport> rows,
                                  const Shape& input) const {
  std::optional<double> dense_network_ms;
  std::optional<Speed> speed;
  while (!replaced.empty()) {
    speed = time_network(root, replaced, rows, input);
    if (speed && !dense_network_ms) dense_network_ms = speed->dense_ms;
    if (!speed || speed->faster || !options_.only_faster) break;
    const auto worst = std::ranges::min_element(
        replaced, {}, [&](const Replaced& layer) { return rows[layer.row].speed->ratio.median; });
    LayerReport& row = rows[worst->row];
    replace_module(root, row.path, std::move(worst->dense));
    row.stay_dense(str("the network is not faster with it: ", describe(*speed), " at ", where()));
    replaced.erase(worst);
    speed.reset();
  }
  for (LayerReport& row : rows) {
    if (row.speed && dense_network_ms) row.network_share = row.speed->dense_ms / *dense_network_ms;
  }
  return speed;
}

}  // namespace tessera
