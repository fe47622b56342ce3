#include "compress/timing/veto.h"

#include <omp.h>

#include <algorithm>

#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/io/answer_cache.h"
#include "core/support/error.h"
#include "core/support/hash.h"

namespace tessera {
namespace {

Shape with_batch(Shape shape, std::int64_t batch) {
  shape.set(0, batch);
  return shape;
}

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

TimingOptions in_rounds(TimingOptions options, std::int64_t most) {
  options.rounds = std::min(options.rounds, most);
  return options;
}

// With what is trained of it: gradients of frozen weights cost no time.
std::string layer_key(const Module& module) {
  std::string frozen;
  for (const auto& parameter : module.parameters()) {
    if (!parameter->trainable()) frozen += (frozen.empty() ? " frozen " : ",") + parameter->name();
  }
  return str(module.kind(), to_json(module.config()), frozen);
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

std::optional<Speed> Veto::known_or_measured(const std::string& key, const std::string& what,
                                             const std::function<Speed()>& measure) const {
  const std::optional<std::string> text = recall_or_measure(key, [&] {
    if (options_.before_timing) options_.before_timing(what);
    std::string measured = to_text(measure());
    if (options_.after_timing) options_.after_timing();
    return measured;
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

std::string Veto::layer_pair(const Module& dense, const Module& compressed, const Shape& batch, bool no_input_gradient) const {
  return str(layer_key(compressed), " for ", layer_key(dense), " input ", batch, ' ', no_input_gradient ? "first " : "", where());
}

std::string Veto::network_hash(Module& root, std::span<Replaced> replaced) const {
  std::string layers;
  for_each_module(root, [&](const Module& module) { layers += str(module.path(), ' ', layer_key(module), '\n'); });
  for (const Replaced& layer : replaced) layers += str(layer.path, " for ", layer_key(*layer.dense), '\n');
  return xxh3_128(layers);
}

// Kernels choose in a scope of their own, which keeps what it has chosen for the next timing.
Speed Veto::timed_aside(const std::string& what, const std::function<PairedTimes()>& time) const {
  if (options_.before_timing) options_.before_timing(what);
  DecisionScope aside({.measure = true, .known = aside_});
  const Speed speed = speed_of(time());
  aside_ = aside.taken();
  if (options_.after_timing) options_.after_timing();
  return speed;
}

Speed Veto::known_or_kept(const std::string& key, const std::function<Speed()>& measure) const {
  const std::optional<std::string> text = recall_or_measure(key, [&] { return to_text(measure()); });
  TESSERA_CHECK(text, ConfigError, "latency is measured, which deterministic: true forbids, and no decisions file has ", key,
                "; replay a run's with train --decisions FILE, or ask for ranks in another way");
  try {
    return speed_from(*text);
  } catch (const ConfigError& error) {
    throw ConfigError(str("decisions: ", key, ": ", error.what()));
  }
}

Speed Veto::rank_speed(Module& dense, Module& compressed, const Shape& input, bool first, const std::string& what) const {
  const Shape batch = with_batch(input, options_.batch);
  const bool no_input_gradient = first && options_.timing.phase == Phase::training;
  const std::string key = str(kLatencyDecision, "layer ", layer_pair(dense, compressed, batch, no_input_gradient));
  const auto time = [&] {
    return time_layer(dense, compressed, batch, !no_input_gradient, in_rounds(options_.timing, kRankRounds));
  };
  return known_or_kept(key, [&] {
    if (options_.kept_for.empty()) return timed_aside(what, time);
    const AnswerCache cache(str(options_.kept_for, '\n', key));
    if (const std::optional<Speed> kept = kept_speed(cache)) return *kept;
    const Speed speed = timed_aside(what, time);
    cache.store(to_text(speed));
    return speed;
  });
}

Speed Veto::rank_speed(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const {
  const Shape batch = with_batch(input, options_.batch);
  const std::string key = str(kLatencyDecision, "network ", network_hash(*root, replaced), " input ", batch, ' ', where());
  const auto time = [&] { return time_network(root, replaced, batch, in_rounds(options_.timing, kRankRoundsOfNetwork)); };
  return known_or_kept(key, [&] { return timed_aside("the network", time); });
}

LayerVerdict Veto::judge(Module& dense, Module& compressed, const Shape& input, bool first) const {
  const Shape batch = with_batch(input, options_.batch);
  const bool no_input_gradient = first && options_.timing.phase == Phase::training;
  const std::string key = str(kKeepDecision, "layer ", layer_pair(dense, compressed, batch, no_input_gradient));
  LayerVerdict verdict;
  verdict.speed = known_or_measured(
      key, dense.path(), [&] { return speed_of(time_layer(dense, compressed, batch, !no_input_gradient, options_.timing)); });
  if (!verdict.speed || verdict.speed->faster) return verdict;
  verdict.reason = str("not faster at ", where());
  verdict.stays = !options_.only_faster;
  return verdict;
}

std::optional<Speed> Veto::network_speed(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const {
  const Shape batch = with_batch(input, options_.batch);
  const std::string key = str(kKeepDecision, "network ", network_hash(*root, replaced), " input ", batch, ' ', where());
  return known_or_measured(key, "the network", [&] { return speed_of(time_network(root, replaced, batch, options_.timing)); });
}

NetworkVerdict Veto::settle(std::unique_ptr<Module>& root, std::vector<Replaced>& replaced, const Shape& input) const {
  NetworkVerdict verdict;
  while (!replaced.empty()) {
    verdict.speed = network_speed(root, replaced, input);
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
