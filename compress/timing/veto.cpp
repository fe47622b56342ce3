#include "compress/timing/veto.h"

#include <omp.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/support/error.h"
#include "core/support/hash.h"
#include "core/support/log.h"
#include "layers/compressed.h"
#include "layers/decoding.h"

namespace tessera {
namespace {

constexpr const char* kNetwork = "the network";  // the name that before_timing() gets

// Ranks need many timings, and no verdict depends on a single one.
constexpr std::int64_t kRankRounds = 7;
constexpr std::int64_t kRoundsOfNetwork = 15;  // also for phases whose speed is only reported

// Timings are repeated, and their batches joined, while it is unclear whether a ratio is above kFasterRatio. A ratio of 1 is so
// far below it that further looks hardly ever accept it as faster.
constexpr int kMostLooks = 3;

// An entry that cannot be read counts as missing.
std::optional<Speed> kept_speed(const AnswerCache& cache) {
  try {
    const std::optional<Value> kept = cache.find();
    return kept ? std::optional(speed_from(kept->as_string())) : std::nullopt;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// The speed in the decision of this key, or the one that `measure` gives. Empty if it is unknown and may not be measured.
std::optional<Speed> recalled(const std::string& key, const std::function<Speed()>& measure) {
  const std::optional<std::string> text = recall_or_measure(key, [&] { return to_text(measure()); });
  try {
    return text ? std::optional(speed_from(*text)) : std::nullopt;
  } catch (const ConfigError& error) {
    throw ConfigError(str("decisions: ", key, ": ", error.what()));
  }
}

// Includes the layer's structure and its frozen parameters, because gradients of frozen weights cost no time.
std::string layer_key(const Module& module) {
  const CompressedLayer* const compressed = as_compressed(module);
  const std::string structure = compressed != nullptr ? compressed->structure() : "";
  std::string frozen;
  for (const auto& parameter : module.parameters()) {
    if (!parameter->trainable()) frozen += (frozen.empty() ? " frozen " : ",") + parameter->name();
  }
  Value config = module.config();
  if (Value* const sparse = config.find("sparse")) sparse->erase("seed");  // which pairs attention sees does not change its time
  return str(module.kind(), to_json(config), structure.empty() ? "" : " of ", structure, frozen);
}

// The same for a layer that computes by its children.
std::string chain_key(const Module& module) {
  std::string key = layer_key(module);
  if (!module.parameters().empty()) return key;
  for (const Module::Child& child : module.children()) key += str(" [", chain_key(*child.module), ']');
  return key;
}

// The part of a decision's key that says which dense layer a compressed one was timed against.
std::string of_dense_layer(const Module& dense) { return str(" for ", layer_key(dense), " input "); }

}  // namespace

bool holds_keep_choice(const DecisionMap& decisions, const Module& dense, const std::string& where) {
  const std::string layer = of_dense_layer(dense);
  return std::ranges::any_of(decisions, [&](const auto& decision) {
    const std::string& key = decision.first;
    return key.starts_with(str(kKeepDecision, "layer ")) && key.find(layer) != std::string::npos && key.ends_with(' ' + where);
  });
}

void KeepForConfig::fields(Fields& f) {
  f.add("batch", batch,
        {.help = "samples; when not given 1 in decode, else the largest of report.latency.batch",
         .range = at_least(1),
         .example = "128",
         .observable = "report"});
  std::vector<std::string_view> phases = phase_names();
  if (!decodes) std::erase(phases, name_of(Phase::decode));
  f.add(
      "phase", phase,
      {.help = decodes ? "what has to be faster: a forward; a new position of a text, those in front of it cached; or a forward "
                         "and a backward"
                       : "what has to be faster: a forward, or a forward and a backward",
       .choices = phases,
       .observable = "report"});
  if (!decodes) return;
  f.add("length", length,
        {.help = "positions of the sequences in decode, the new one included; those of the data's when not given",
         .range = at_least(1),
         .example = "512",
         .observable = "report"});
  f.require(!length || phase == name_of(Phase::decode), "length", "has no effect without phase: decode");
}

Veto Veto::for_layers_of(Module& network) const {
  Veto veto = *this;
  veto.options_.timing.from_memory = layers_from_memory(network, options_.timing);
  return veto;
}

std::int64_t VetoOptions::length_at(Phase phase, const Shape& input) const {
  return phase == Phase::decode ? length.value_or(input[1]) : 0;
}

TimingOptions Veto::timing_in(Phase phase) const {
  TimingOptions options = options_.timing;
  options.phase = phase;
  return options;
}

AnswerCache Veto::cache_of(const std::string& key) const { return AnswerCache(str(options_.kept_for, '\n', key)); }

Shape Veto::timed_input(Shape input, const TimedBatch& at) const {
  input.set(0, at.batch);
  if (at.phase == Phase::decode) input.set(1, options_.length_at(at.phase, input));
  return input;
}

std::string Veto::where(const TimedBatch& at, const Shape& input) const {
  const TimingOptions timing = timing_in(at.phase);
  return where_timed({.batch = at.batch,
                      .phase = at.phase,
                      .length = options_.length_at(at.phase, input),
                      .machine = machine_text(timing.device, omp_get_max_threads()),
                      .folded = timing.on_folded_copies(),
                      .compute = timing.compute,
                      .recompute = timing.recompute && at.phase == Phase::training,
                      .tf32 = tf32_products()});
}

// What is timed, and the end of its decisions' keys.
struct Veto::Timing {
  std::string key;
  Phase phase;
  std::function<PairedTimes(const TimingOptions&)> time;
};

Veto::Timing Veto::layer_timing(Module& dense, Module& compressed, const Shape& input, bool first) const {
  const Shape batch = timed_input(input, decides());
  const bool input_gradient = !first || phase() != Phase::training;
  const std::string key = str("layer ", chain_key(compressed), of_dense_layer(dense), batch, ' ', input_gradient ? "" : "first ",
                              options_.timing.from_memory ? "from memory " : "", where(input));
  return {key, phase(), [&dense, &compressed, batch, input_gradient](const TimingOptions& options) {
            return time_layer(dense, compressed, batch, input_gradient, options);
          }};
}

Veto::Timing Veto::network_timing(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input,
                                  const TimedBatch& at) const {
  const Shape batch = timed_input(input, at);
  std::string layers;
  for_each_module(*root, [&](const Module& module) { layers += str(module.path(), ' ', layer_key(module), '\n'); });
  for (const Replaced& layer : replaced) {
    for_each_module(*layer.dense, [&](const Module& dense) {
      const std::string path = dense.path().empty() ? layer.path : join_path(layer.path, dense.path());
      layers += str(path, " for ", layer_key(dense), '\n');
    });
  }
  return {str("network ", xxh3_128(layers), " input ", batch, ' ', where(at, input)), at.phase,
          [&root, replaced, batch](const TimingOptions& options) { return time_network(root, replaced, batch, options); }};
}

Speed Veto::timed(const std::string& what, const std::function<PairedTimes()>& time) const {
  PairedTimes times;
  for (int look = 0; look == 0 || (look < kMostLooks && is_undecided(times)); ++look) {
    if (options_.before_timing) options_.before_timing(what);
    times = look == 0 ? time() : joined(times, time());
  }
  disturbed_ = times.disturbance.much();
  if (disturbed_ && !std::exchange(warned_, true)) warn_of(times.disturbance, what);
  if (options_.after_timing) options_.after_timing();
  return speed_of(times);
}

std::optional<Speed> Veto::keep_speed(const Timing& timing, const std::string& what) const {
  const std::string key = str(kKeepDecision, timing.key);
  const std::optional<Speed> speed =
      recalled(key, [&] { return timed(what, [&] { return timing.time(timing_in(timing.phase)); }); });
  TESSERA_CHECK(speed || !options_.only_faster, ConfigError,
                "keep: faster is decided by a clock, which deterministic: true forbids, and no decisions file has ", key,
                "; replay a run's with train --decisions FILE, or set keep: always");
  return speed;
}

// Kernels are chosen in a separate scope, which keeps its choices for the next timing.
Speed Veto::timed_aside(const Timing& timing, const std::string& what, std::int64_t rounds) const {
  TimingOptions options = timing_in(timing.phase);
  if (rounds < options.sampling.all_rounds()) options.sampling = Sampling::told_in(rounds);
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

// Returns the cached speed. If there is none, it calls `measure` and caches the result.
Speed Veto::layer_speed(const std::string& key, const std::function<Speed()>& measure) const {
  if (options_.kept_for.empty()) return measure();
  const AnswerCache cache = cache_of(key);
  if (const std::optional<Speed> kept = kept_speed(cache)) return *kept;
  disturbed_ = false;
  const Speed speed = measure();
  if (!disturbed_) cache.store(to_text(speed));  // a disturbed timing is not cached, so another run measures again
  return speed;
}

Speed Veto::rank_speed(Module& dense, Module& compressed, const Shape& input, bool first, const std::string& what) const {
  const Timing timing = layer_timing(dense, compressed, input, first);
  return latency_speed(
      timing, [&](const std::string& key) { return layer_speed(key, [&] { return timed_aside(timing, what, kRankRounds); }); });
}

void Veto::share_rank_timings(std::vector<RankTiming> timings) const {
  if (!shares_rank_timings()) return;
  const auto timing_of = [&](const RankTiming& each, Module& compressed) {
    return layer_timing(*each.dense, compressed, each.input, each.first);
  };
  std::set<std::string> keys;
  std::vector<RankTiming> wanted;
  for (RankTiming& each : timings) {
    each.key = str(kLatencyDecision, timing_of(each, *each.compressed()).key);
    const bool kept = !options_.kept_for.empty() && kept_speed(cache_of(each.key));
    if (kept || !outlook_of(each.key).measured || !keys.insert(each.key).second) continue;
    each.input = timed_input(each.input, decides());
    wanted.push_back(std::move(each));
  }
  if (wanted.empty()) return;
  const RankClock clock{.time =
                            [&](const RankTiming& each) {
                              const std::unique_ptr<Module> compressed = each.compressed();
                              return to_text(timed_aside(timing_of(each, *compressed), each.what, kRankRounds));
                            },
                        .record =
                            [&](const DecisionMap& times) {
                              for (const auto& each : times) {  // no structured binding: clang 14 cannot capture it
                                const std::string& key = each.first;
                                recalled(key, [&] { return layer_speed(key, [&] { return speed_from(each.second); }); });
                              }
                            }};
  options_.share_timings(wanted, timing_in(phase()), clock);
}

Speed Veto::rank_speed(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const {
  const Timing timing = network_timing(root, replaced, input, decides());
  return latency_speed(timing, [&](const std::string&) { return timed_aside(timing, kNetwork, kRoundsOfNetwork); });
}

LayerVerdict Veto::judge(Module& dense, Module& compressed, const Shape& input, bool first) const {
  LayerVerdict verdict;
  verdict.speed = keep_speed(layer_timing(dense, compressed, input, first), dense.path());
  if (!verdict.speed || verdict.speed->faster) return verdict;
  verdict.reason = str("not faster at ", where(input));
  verdict.stays = !options_.only_faster;
  return verdict;
}

NetworkVerdict Veto::settle(std::unique_ptr<Module>& root, std::vector<Replaced>& replaced, const Shape& input) const {
  NetworkVerdict verdict;
  while (!replaced.empty()) {
    verdict.speed = keep_speed(network_timing(root, replaced, input, decides()), kNetwork);
    if (verdict.speed && !verdict.dense_ms) verdict.dense_ms = verdict.speed->dense_ms;
    if (!verdict.speed || verdict.speed->faster || !options_.only_faster) break;
    const auto worst = std::ranges::min_element(replaced, {}, [](const Replaced& layer) { return layer.speed->ratio.median; });
    replace_module(root, worst->path, std::move(worst->dense));
    verdict.went_back.push_back(worst->path);
    replaced.erase(worst);
    verdict.speed.reset();
  }
  verdict.reason = str("the network is not faster with it at ", where(input));
  return verdict;
}

std::vector<PhaseSpeed> Veto::other_speeds(std::unique_ptr<Module>& root, std::span<Replaced> replaced,
                                           const Shape& input) const {
  std::vector<PhaseSpeed> speeds;
  if (replaced.empty() || !has_attention(*root)) return speeds;
  const bool decodes = why_not_decode(*root).empty();
  for (const TimedBatch& at : options_.other_phases) {
    if (at.phase == Phase::decode && !decodes) continue;
    const std::string what = str(kNetwork, " in ", name_of(at.phase));
    const Timing timing = network_timing(root, replaced, input, at);
    try {
      const std::optional<Speed> speed =
          recalled(str(kSpeedDecision, timing.key), [&] { return timed_aside(timing, what, kRoundsOfNetwork); });
      if (speed) speeds.push_back({std::string(name_of(at.phase)), where(at, input), *speed});
    } catch (const OutOfMemoryError& error) {
      log_warning(str(what, " is not timed at ", where(at, input), ": ", error.what()));
      if (options_.after_timing) options_.after_timing();
    }
  }
  return speeds;
}

}  // namespace tessera
