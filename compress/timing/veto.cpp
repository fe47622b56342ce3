#include "compress/timing/veto.h"

#include <omp.h>

#include <algorithm>

#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/io/answer_cache.h"
#include "core/support/error.h"
#include "core/support/hash.h"
#include "layers/compressed.h"

namespace tessera {
namespace {

Shape with_batch(Shape shape, std::int64_t batch) {
  shape.set(0, batch);
  return shape;
}

constexpr const char* kNetwork = "the network";  // what before_timing() is told

// For ranks there are many timings to take, and no verdict hangs on one.
constexpr std::int64_t kRankRounds = 7;
constexpr std::int64_t kRankRoundsOfNetwork = 15;

// An entry that cannot be read is as good as none.
std::optional<Speed> kept_speed(const AnswerCache& cache) {
  try {
    const std::optional<Value> kept = cache.find();
    return kept ? std::optional(speed_from(kept->as_string())) : std::nullopt;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// The speed that the decision of this key holds, or that `measure` gives; empty where it is not known and may not be measured.
std::optional<Speed> recalled(const std::string& key, const std::function<Speed()>& measure) {
  const std::optional<std::string> text = recall_or_measure(key, [&] { return to_text(measure()); });
  try {
    return text ? std::optional(speed_from(*text)) : std::nullopt;
  } catch (const ConfigError& error) {
    throw ConfigError(str("decisions: ", key, ": ", error.what()));
  }
}

// With its structure and what is trained of it: gradients of frozen weights cost no time.
std::string layer_key(const Module& module) {
  const CompressedLayer* const compressed = as_compressed(module);
  const std::string structure = compressed != nullptr ? compressed->structure() : "";
  std::string frozen;
  for (const auto& parameter : module.parameters()) {
    if (!parameter->trainable()) frozen += (frozen.empty() ? " frozen " : ",") + parameter->name();
  }
  return str(module.kind(), to_json(module.config()), structure.empty() ? "" : " of ", structure, frozen);
}

// The same of a layer that computes by its children.
std::string chain_key(const Module& module) {
  std::string key = layer_key(module);
  if (!module.parameters().empty()) return key;
  for (const Module::Child& child : module.children()) key += str(" [", chain_key(*child.module), ']');
  return key;
}

}  // namespace

void KeepForConfig::fields(Fields& f) {
  f.add("batch", batch,
        {.help = "images; the largest of report.latency.batch when not given",
         .range = at_least(1),
         .example = "128",
         .observable = "report"});
  f.add("phase", phase,
        {.help = "what has to be faster: a forward, or a forward and a backward",
         .choices = {"inference", "training"},
         .observable = "report"});
}

std::string Veto::where() const {
  const TimingOptions& timing = options_.timing;
  return where_timed({.batch = options_.batch,
                      .phase = timing.phase,
                      .machine = machine_text(timing.device, omp_get_max_threads()),
                      .folded = timing.on_folded_copies(),
                      .compute = timing.compute,
                      .recompute = timing.recompute && timing.phase == Phase::training,
                      .tf32 = tf32_products()});
}

// What is timed, and how the keys of its decisions end.
struct Veto::Timing {
  std::string key;
  std::function<PairedTimes(const TimingOptions&)> time;
};

Veto::Timing Veto::layer_timing(Module& dense, Module& compressed, const Shape& input, bool first) const {
  const Shape batch = with_batch(input, options_.batch);
  const bool input_gradient = !first || options_.timing.phase != Phase::training;
  const std::string key = str("layer ", chain_key(compressed), " for ", layer_key(dense), " input ", batch, ' ',
                              input_gradient ? "" : "first ", where());
  return {key, [&dense, &compressed, batch, input_gradient](const TimingOptions& options) {
            return time_layer(dense, compressed, batch, input_gradient, options);
          }};
}

Veto::Timing Veto::network_timing(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const {
  const Shape batch = with_batch(input, options_.batch);
  std::string layers;
  for_each_module(*root, [&](const Module& module) { layers += str(module.path(), ' ', layer_key(module), '\n'); });
  for (const Replaced& layer : replaced) {
    for_each_module(*layer.dense, [&](const Module& dense) {
      const std::string path = dense.path().empty() ? layer.path : join_path(layer.path, dense.path());
      layers += str(path, " for ", layer_key(dense), '\n');
    });
  }
  return {str("network ", xxh3_128(layers), " input ", batch, ' ', where()),
          [&root, replaced, batch](const TimingOptions& options) { return time_network(root, replaced, batch, options); }};
}

Speed Veto::timed(const std::string& what, const std::function<PairedTimes()>& time) const {
  if (options_.before_timing) options_.before_timing(what);
  const Speed speed = speed_of(time());
  if (options_.after_timing) options_.after_timing();
  return speed;
}

std::optional<Speed> Veto::keep_speed(const Timing& timing, const std::string& what) const {
  const std::string key = str(kKeepDecision, timing.key);
  const std::optional<Speed> speed = recalled(key, [&] { return timed(what, [&] { return timing.time(options_.timing); }); });
  TESSERA_CHECK(speed || !options_.only_faster, ConfigError,
                "keep: faster is decided by a clock, which deterministic: true forbids, and no decisions file has ", key,
                "; replay a run's with train --decisions FILE, or set keep: always");
  return speed;
}

// Kernels choose in a scope of their own, which keeps what it has chosen for the next timing.
Speed Veto::timed_aside(const Timing& timing, const std::string& what, std::int64_t rounds) const {
  TimingOptions options = options_.timing;
  options.rounds = std::min(options.rounds, rounds);
  return timed(what, [&] {
    const DecisionScope aside({.measure = true, .known = aside_});
    PairedTimes times = timing.time(options);
    aside_ = aside.taken();
    return times;
  });
}

Speed Veto::latency_speed(const Timing& timing, const std::function<Speed(const std::string& key)>& measure) const {
  const std::string key = str(kLatencyDecision, timing.key);
  const std::optional<Speed> speed = recalled(key, [&] { return measure(key); });
  TESSERA_CHECK(speed, ConfigError, "latency is measured, which deterministic: true forbids, and no decisions file has ", key,
                "; replay a run's with train --decisions FILE, or ask for ranks in another way");
  return *speed;
}

Speed Veto::rank_speed(Module& dense, Module& compressed, const Shape& input, bool first, const std::string& what) const {
  const Timing timing = layer_timing(dense, compressed, input, first);
  return latency_speed(timing, [&](const std::string& key) {
    if (options_.kept_for.empty()) return timed_aside(timing, what, kRankRounds);
    const AnswerCache cache(str(options_.kept_for, '\n', key));
    if (const std::optional<Speed> kept = kept_speed(cache)) return *kept;
    const Speed speed = timed_aside(timing, what, kRankRounds);
    cache.store(to_text(speed));
    return speed;
  });
}

Speed Veto::rank_speed(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const {
  const Timing timing = network_timing(root, replaced, input);
  return latency_speed(timing, [&](const std::string&) { return timed_aside(timing, kNetwork, kRankRoundsOfNetwork); });
}

LayerVerdict Veto::judge(Module& dense, Module& compressed, const Shape& input, bool first) const {
  LayerVerdict verdict;
  verdict.speed = keep_speed(layer_timing(dense, compressed, input, first), dense.path());
  if (!verdict.speed || verdict.speed->faster) return verdict;
  verdict.reason = str("not faster at ", where());
  verdict.stays = !options_.only_faster;
  return verdict;
}

NetworkVerdict Veto::settle(std::unique_ptr<Module>& root, std::vector<Replaced>& replaced, const Shape& input) const {
  NetworkVerdict verdict;
  while (!replaced.empty()) {
    verdict.speed = keep_speed(network_timing(root, replaced, input), kNetwork);
    if (verdict.speed && !verdict.dense_ms) verdict.dense_ms = verdict.speed->dense_ms;
    if (!verdict.speed || verdict.speed->faster || !options_.only_faster) break;
    const auto worst = std::ranges::min_element(replaced, {}, [](const Replaced& layer) { return layer.speed->ratio.median; });
    replace_module(root, worst->path, std::move(worst->dense));
    verdict.went_back.push_back(worst->path);
    replaced.erase(worst);
    verdict.speed.reset();
  }
  verdict.reason = str("the network is not faster with it at ", where());
  return verdict;
}

}  // namespace tessera
