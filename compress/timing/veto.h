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

namespace tessera {

// How the keys of these decisions begin.
inline constexpr std::string_view kKeepDecision = "keep.";
// And those of timings that ranks are chosen by.
inline constexpr std::string_view kLatencyDecision = "latency.";

// `keep_for`: where a compressed layer has to be faster.
struct KeepForConfig {
  std::optional<std::int64_t> batch;  // the largest batch of the report when it is not set
  std::string phase = "inference";
  void fields(Fields& f);
};

struct VetoOptions {
  bool only_faster = true;  // false (`keep: always`): layers stay although they are not faster, and are marked
  std::int64_t batch = 1;
  TimingOptions timing = {};
  std::function<void(const std::string&)> before_timing = {};  // told the layer, or "the network"; what it throws passes through
  std::function<void()> after_timing = {};  // not where the timing throws
  // Processor, libraries and build, where timings for ranks are kept between runs (core/io/answer_cache.h); empty: they are not.
  std::string kept_for = {};
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

// Faster means: the lower end of the 95 % confidence interval of the median of 60 paired, interleaved ratios is above 1.02.
class Veto {
 public:
  explicit Veto(const VetoOptions& options) : options_(options) {}

  // Whether the compressed layer stays in the place of the dense one, which is in its tree. The batch of `input` is not read.
  // `first`: no layer before it has parameters, so that training needs no gradient of its input. Throws ConfigError where the
  // answer is needed, is not known and may not be measured.
  LayerVerdict judge(Module& dense, Module& compressed, const Shape& input, bool first) const;

  // Times the network against itself with the dense layers in their places. While it is not faster, the layer of the smallest
  // speed-up goes back: into the tree and out of `replaced`.
  NetworkVerdict settle(std::unique_ptr<Module>& root, std::vector<Replaced>& replaced, const Shape& input) const;

  // For who chooses ranks: a compressed layer beside the dense one, in fewer rounds than judge() takes, and the network with
  // dense layers in their places. As decisions, but what kernels choose for these shapes is not recorded. `what` is told before
  // each timing. Throw ConfigError where the answer is not known and may not be measured.
  Speed rank_speed(Module& dense, Module& compressed, const Shape& input, bool first, const std::string& what) const;
  Speed rank_speed(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const;

  // "batch 32, folded inference, 2 threads", a GPU's name in the place of threads, and ", bf16" unless it is f32.
  std::string where() const;

 private:
  struct Timing;
  Timing layer_timing(Module& dense, Module& compressed, const Shape& input, bool first) const;
  Timing network_timing(std::unique_ptr<Module>& root, std::span<Replaced> replaced, const Shape& input) const;
  Speed timed(const std::string& what, const std::function<PairedTimes()>& time) const;
  Speed timed_aside(const Timing& timing, const std::string& what, std::int64_t rounds) const;
  std::optional<Speed> keep_speed(const Timing& timing, const std::string& what) const;
  Speed latency_speed(const Timing& timing, const std::function<Speed(const std::string& key)>& measure) const;

  VetoOptions options_;
  mutable DecisionMap aside_;  // what kernels chose in timings for ranks
};

}  // namespace tessera
