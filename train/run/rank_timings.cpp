#include "train/run/rank_timings.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/support/error.h"
#include "core/support/host.h"
#include "layers/builtin.h"
#include "layers/fold.h"
#include "layers/model_tree.h"
#include "train/run/compute_dtype.h"
#include "train/run/rank_messages.h"
#include "train/run/run_state.h"

namespace tessera {
namespace {

// The place of a process: a host, or a GPU of a host. Two ranks in one place would disturb each other's timings.
std::string place_of_process(const ExperimentConfig& config) {
  if (resolve_device(config.device).is_cpu()) return host_name();
  const char* const gpu = std::getenv("CUDA_VISIBLE_DEVICES");  // see take_own_gpu()
  return str(host_name(), " gpu ", gpu != nullptr ? gpu : "");
}

// Encodes frozen parameters by their index in the layer, because paths depend on the place of the layer in its network.
Value encode_layer(Module& layer) {
  Value frozen = Value::list();
  const std::vector<NamedParameter> parameters = named_parameters(layer);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].parameter->trainable()) frozen.as_list().emplace_back(static_cast<std::int64_t>(i));
  }
  Value value = Value::map();
  value.set("tree", describe(layer));
  value.set("frozen", std::move(frozen));
  return value;
}

std::unique_ptr<Module> decode_layer(const Value& value, Device device) {
  std::unique_ptr<Module> layer = rebuild(value.at("tree"), builtin_layers());
  initialize(*layer, 1);
  const std::vector<NamedParameter> parameters = named_parameters(*layer);
  for (const Value& i : value.at("frozen").as_list()) {
    parameters.at(static_cast<std::size_t>(i.as_int())).parameter->set_trainable(false);
  }
  move_to(*layer, device);
  return layer;
}

Value encode_timing(const RankTiming& timing) {
  Value value = Value::map();
  value.set("key", timing.key);
  value.set("what", timing.what);
  value.set("dense", encode_layer(*timing.dense));
  value.set("compressed", encode_layer(*timing.compressed()));
  value.set("input", sizes_of(timing.input));
  value.set("first", timing.first);
  return value;
}

Shape decode_shape(const Value& sizes) {
  std::vector<std::int64_t> all;
  for (const Value& size : sizes.as_list()) all.push_back(size.as_int());
  return Shape(std::span<const std::int64_t>(all));
}

VetoOptions options_of_round(const Value& round, const ExperimentConfig& config) {
  VetoOptions options{.only_faster = false};
  options.timing.phase = phase_named(round.at("phase").as_string());
  options.timing.compute = compute_dtype_of(config);
  options.timing.device = resolve_device(config.device);
  options.timing.recompute = round.at("recompute").as_bool();
  options.timing.from_memory = round.at("from_memory").as_bool();
  if (round.at("folded").as_bool()) options.timing.folded = for_inference;
  return options;
}

DecisionMap times_of(const Value::List& timings, VetoOptions options, Device device) {
  const DecisionScope fastest({.measure = true});  // a separate scope, because rank 0 chooses for the run
  DecisionMap times;
  std::map<std::int64_t, Veto> vetoes;  // by batch: each keeps what its kernels have chosen for the next timing
  for (const Value& each : timings) {
    const Shape input = decode_shape(each.at("input"));
    options.batch = input[0];
    const std::unique_ptr<Module> dense = decode_layer(each.at("dense"), device),
                                  compressed = decode_layer(each.at("compressed"), device);
    const Veto& veto = vetoes.try_emplace(input[0], options).first->second;
    const Speed speed = veto.rank_speed(*dense, *compressed, input, each.at("first").as_bool(), each.at("what").as_string());
    times[each.at("key").as_string()] = to_text(speed);
  }
  return times;
}

std::string encode_failure(const std::string& what, const char* kind) {
  Value value = Value::map();
  value.set("error", what);
  value.set("kind", kind);
  return to_json(value);
}

constexpr const char *kMemory = "memory", *kConfig = "config", *kOther = "other";

}  // namespace

std::vector<int> ranks_that_time(Communicator& ranks, const ExperimentConfig& config) {
  return first_ranks(ranks, place_of_process(config));
}

std::vector<std::vector<TimingShare>> timing_rounds(std::span<const RankTiming> timings, std::span<const int> timers) {
  std::vector<std::pair<std::int64_t, std::vector<RankTiming>>> layers;  // multiply-adds of a layer's timings, and the timings
  for (const RankTiming& each : timings) {
    const auto same = [&](const auto& layer) { return layer.second.front().dense == each.dense; };
    auto found = std::ranges::find_if(layers, same);
    if (found == layers.end()) found = layers.insert(layers.end(), {0, {}});
    found->first += total_cost(*each.dense, each.input).macs;
    found->second.push_back(each);
  }
  std::ranges::stable_sort(layers, std::ranges::greater(), [](const auto& layer) { return layer.first; });
  std::vector<std::vector<TimingShare>> rounds;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i % timers.size() == 0) rounds.emplace_back();
    rounds.back().push_back({timers[i % timers.size()], std::move(layers[i].second)});
  }
  return rounds;
}

std::string encode_round(std::span<const TimingShare> round, const TimingOptions& options) {
  Value shares = Value::list();
  for (const TimingShare& share : round) {
    if (share.rank == 0) continue;
    Value timings = Value::list();
    for (const RankTiming& timing : share.timings) timings.as_list().push_back(encode_timing(timing));
    Value value = Value::map();
    value.set("rank", share.rank);
    value.set("timings", std::move(timings));
    shares.as_list().push_back(std::move(value));
  }
  Value value = Value::map();
  value.set("phase", name_of(options.phase));
  value.set("recompute", options.recompute);
  value.set("from_memory", options.from_memory);
  value.set("folded", options.on_folded_copies());
  value.set("shares", std::move(shares));
  return to_json(value);
}

std::string answer_to_round(const std::string& round, int rank, const ExperimentConfig& config, RankLog& log) {
  try {
    const Value told = parse_json(round, "rank 0");
    DecisionMap times;
    for (const Value& share : told.at("shares").as_list()) {
      if (share.at("rank").as_int() != rank) continue;
      const Value::List& timings = share.at("timings").as_list();
      times.merge(times_of(timings, options_of_round(told, config), resolve_device(config.device)));
      log.line(str("timed ", timings.front().at("what").as_string(), ", ", timings.size(), " of them"));
    }
    return encode_answer(times);
  } catch (const RankFailed&) {
    throw;
  } catch (const OutOfMemoryError& error) {
    return encode_failure(error.what(), kMemory);
  } catch (const ConfigError& error) {
    return encode_failure(error.what(), kConfig);
  } catch (const std::exception& error) {
    return encode_failure(error.what(), kOther);
  }
}

std::string encode_answer(const DecisionMap& times) {
  Value value = Value::map();
  value.set("times", parse_json(encode_decisions(times), "times"));
  return to_json(value);
}

DecisionMap read_answer(const std::string& answer, int rank) {
  const Value value = parse_json(answer, str("rank ", rank));
  if (const Value* const error = value.find("error")) {
    const std::string what = str("rank ", rank, ": ", error->as_string());
    const std::string& kind = value.at("kind").as_string();
    if (kind == kMemory) throw OutOfMemoryError(what);
    if (kind == kConfig) throw ConfigError(what);
    throw Error(what);
  }
  return decode_decisions(to_json(value.at("times")));
}

}  // namespace tessera
