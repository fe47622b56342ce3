// A compressed layer is faster than its dense original, or it stays dense: both are timed on the device, batch and phase that the
// user asks for, and then the network with all of them. Timings are decisions (core/device/decisions.h): recorded before they are
// used, so that a resumed run compresses the same layers and never measures again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/timing/compare.h"
#include "compress/timing/speed.h"
#include "core/config/fields.h"
#include "core/device/decisions.h"
#include "core/io/answer_cache.h"

namespace tessera {

// How the keys of these decisions begin.
inline constexpr std::string_view kKeepDecision = "keep.";
// How keys of timings that ranks are chosen by begin.
inline constexpr std::string_view kLatencyDecision = "latency.";
// How keys of timings that are only reported, and decide nothing, begin.
inline constexpr std::string_view kSpeedDecision = "speed.";

// Whether the decisions hold, for a layer like this dense one, that a compressed layer in its place is kept or not. `where` is of
// where_timed(); form, ranks and input of the timing are not compared.
bool holds_keep_choice(const DecisionMap& decisions, const Module& dense, const std::string& where);

// `keep_for`: where a compressed layer has to be faster.
struct KeepForConfig {
  bool decodes = true;  // whether the block may compress networks that write text; not a key of the file
  std::optional<std::int64_t> batch = {};  // 1 in decode, the largest batch of the report otherwise, when it is not set
  std::string phase = "inference";
  std::optional<std::int64_t> length = {};  // of the sequences in decode; the data's when it is not set
  void fields(Fields& f);
};

// A timing that ranks are chosen by: of a compressed layer beside the dense one.
struct RankTiming {
  std::string what;  // what is timed, as before_timing() is told
  Module* dense;
  std::function<std::unique_ptr<Module>()> compressed;  // makes it
  Shape input;  // the layer's own; as ShareTimings are told it, with the batch and length that are timed
  bool first = false;  // as Veto::judge() says
  std::string key = {};  // of its decision, as ShareTimings are told it
};

// What ShareTimings gets of this process to share timings out.
struct RankClock {
  std::function<std::string(const RankTiming&)> time;  // takes a timing here: the text of its decision, of to_text(Speed)
  std::function<void(const DecisionMap&)> record;  // such texts by key, as decisions of this process; also of some timings
};

// Takes such timings together with other processes; may leave some out. `options` are those of every timing.
using ShareTimings =
    std::function<void(std::span<const RankTiming> timings, const TimingOptions& options, const RankClock& clock)>;

struct VetoOptions {
  bool only_faster = true;  // false (`keep: always`): layers stay although they are not faster, and are marked
  std::int64_t batch = 1;
  std::optional<std::int64_t> length = {};  // in decode: of the sequences, the new position included; the input's without it
  TimingOptions timing = {};
  std::vector<TimedBatch> other_phases = {};  // in which other_speeds() times the network
  // Told the layer, "the network" or "the network in decode"; what it throws passes through.
  std::function<void(const std::string&)> before_timing = {};
  std::function<void()> after_timing = {};  // not where the timing throws
  // Processor, libraries and build, where timings for ranks are kept between runs (core/io/answer_cache.h); empty: they are not.
  std::string kept_for = {};
  ShareTimings share_timings = {};  // takes those that ranks are chosen by, before they are asked for; empty: nobody does

  std::int64_t length_at(Phase phase, const Shape& input) const;  // of sequences, as TimedAt says it
};

struct LayerVerdict {
  bool stays = true;
  std::optional<Speed> speed = {};  // empty where nothing was timed
  std::string reason = {};  // why it goes back, or stays and is not faster; without the clock's figures
};

struct NetworkVerdict {
  std::optional<Speed> speed = {};  // of the network as it is left; empty without a layer left, or a timing
  std::optional<double> dense_ms = {};  // of the dense network, where it was timed
  std::vector<std::string> went_back = {};  // paths, in the order in which they went
  std::string reason = {};  // of each of those
};

// Faster means what speed_of() says of one timing. While that is undecided, a second and a third timing are joined to it. If the
// true ratio is 1.02 and batches of rounds are independent, at most one comparison in nineteen says faster; with a smaller ratio
// fewer do. settle() compares the network anew after each layer that went back.
class Veto {
 public:
  explicit Veto(const VetoOptions& options) : options_(options) {}

  // The same for layers of this network: timed from memory where layers_from_memory() says so, which their keys tell.
  Veto for_layers_of(Module& network) const;

  // Whether the compressed layer stays in the place of the dense one, which is in its tree. The batch of `input` is not read,
  // here and below; in decode `input` is [n, positions, ...]. `first`: no layer before it has parameters, so that training needs
  // no gradient of its input. Throws ConfigError where the answer is needed, is not known and may not be measured.
  LayerVerdict judge(Module& dense, Module& compressed, const Shape& input, bool first) const;

  // Times the network against itself with the dense layers in their places. While it is not faster, the layer of the smallest
  // speed-up goes back: into the tree and out of `replaced`.
  NetworkVerdict settle(std::unique_ptr<Module>& root, std::vector<Replaced>& replaced, const Shape& input) const;

  // For choosing ranks: a compressed layer beside the dense one, in fewer rounds than judge() takes, and the network with dense
  // layers in their places. The answers are recorded as decisions; what kernels choose for these shapes is not recorded. `what`
  // is told before each timing. Throw ConfigError where the answer is not known and may not be measured.
  Speed rank_speed(Module& dense, Module& compressed, const Shape& input, bool first, const std::string& what) const;
  Speed rank_speed(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const;
  // Announces the layers that rank_speed() will be asked for: share_timings() is given the timings that are not known and may be
  // measured, each key once.
  void share_rank_timings(std::vector<RankTiming> timings) const;
  bool shares_rank_timings() const { return bool(options_.share_timings); }  // without it that does nothing

  // The speed that settle() left the network with, in other phases: of a transformer, where a layer is left; decode only where
  // the network decodes (layers/decoding.h). Recorded like decisions, but they decide nothing. They take few rounds, and what
  // kernels choose for these shapes is not recorded. Speeds that are not known and may not be measured, or for which memory is
  // short, are left out.
  std::vector<PhaseSpeed> other_speeds(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const;

  Phase phase() const { return options_.timing.phase; }
  // "batch 32, folded inference, 2 threads", a GPU's name in the place of threads, and ", bf16" unless it is f32.
  std::string where(const Shape& input) const { return where(decides(), input); }

 private:
  struct Timing;
  TimedBatch decides() const { return {options_.timing.phase, options_.batch}; }
  TimingOptions timing_in(Phase phase) const;
  AnswerCache cache_of(const std::string& key) const;
  Shape timed_input(Shape input, const TimedBatch& at) const;
  std::string where(const TimedBatch& at, const Shape& input) const;
  Timing layer_timing(Module& dense, Module& compressed, const Shape& input, bool first) const;
  Timing network_timing(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input,
                        const TimedBatch& at) const;
  Speed timed(const std::string& what, const std::function<PairedTimes()>& time) const;
  Speed timed_aside(const Timing& timing, const std::string& what, std::int64_t rounds) const;
  std::optional<Speed> keep_speed(const Timing& timing, const std::string& what) const;
  Speed layer_speed(const std::string& key, const std::function<Speed()>& measure) const;
  Speed latency_speed(const Timing& timing, const std::function<Speed(const std::string& key)>& measure) const;

  VetoOptions options_;
  mutable DecisionMap aside_;  // what kernels chose in timings for ranks
  mutable bool disturbed_ = false;  // by other programs, of the last timing
  mutable bool warned_ = false;  // of the first such
};

}  // namespace tessera
