// What a training step will take in several processes: measured computing of a rank's share, and messages by the alpha-beta model
// (Thakur, Rabenseifner and Gropp, 2005), by which b bytes take latency + b / bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "train/experiment.h"

namespace tessera {

struct Interconnect {
  double latency = 0;  // seconds of a message of no bytes
  double bandwidth = 0;  // bytes a second, in each direction
};

// Gradients that ranks sum together.
struct GradientMessage {
  std::size_t bytes = 0;
  double ready = 0;  // seconds since the step began, when backward has made them
  bool waited_for = false;  // the step waits for it before it goes on: factors of PowerSGD
};

// Seconds until each of `ranks`, 1 or more, has the sums of these messages, which are sent one after the other; the ranks agree
// on each message first. exchange_seconds() is for what tessera does: pieces go from each rank to each, are added and gathered,
// with as many messages and bytes as in a ring, 2 (n - 1) (latency + b / n / bandwidth). tree_seconds() is for a tree, in which
// messages go up and down whole, in 2 ceil(log2 n) (latency + b / bandwidth).
double exchange_seconds(std::span<const GradientMessage> messages, std::int64_t ranks, const Interconnect& between);
double tree_seconds(std::span<const GradientMessage> messages, std::int64_t ranks, const Interconnect& between);
// Seconds of the exchange that backward does not hide: what is left when backward has made the last message, and the whole of
// the messages that the step waits for. A message is sent as soon as it is ready and the one before it is through.
double exposed_seconds(std::span<const GradientMessage> messages, std::int64_t ranks, const Interconnect& between);

struct ScalingRow {
  std::int64_t ranks = 1;
  std::int64_t samples = 0;  // of each rank
  std::int64_t together = 1;  // how many of the ranks computed at once on this machine when it was measured
  double compute_ms = 0;  // measured here
  double exchange_ms = 0;  // of gradients
  double exposed_ms = 0;  // of that, what does not pass during backward
  double tree_ms = 0;  // that a tree would take in place of the exchange
  double step_ms() const { return compute_ms + exposed_ms; }
  double speedup = 1;  // over one rank
  double efficiency() const { return speedup / static_cast<double>(ranks); }

  void fields(Fields& f);
};

struct ScalingPlan {
  std::string stage;  // whose step it is: the first that trains
  std::int64_t gradient_bytes = 0;  // with power_sgd of their factors
  std::int64_t messages = 0;  // that these take
  std::vector<ScalingRow> rows;  // of 1, 2, 4, ... ranks and of as many as were asked for

  void fields(Fields& f);
};

// Other processes of this machine, which compute while a share is timed, as other ranks of it do: they need the same caches and
// the same memory.
class Neighbours {
 public:
  virtual ~Neighbours() = default;
  // Starts `count` processes that take_steps_beside() with the other arguments, and returns when each of them takes steps.
  virtual void start(std::int64_t count, const ExperimentConfig& config, std::int64_t ranks, const std::string& begin) = 0;
  // Ends them. Throws IoError where one has failed.
  virtual void stop() = 0;
};

struct RanksToPlan {
  std::int64_t ranks = 1;  // the most of a row
  // Ranks on one machine. 0: as many as its processors are enough for with threads.compute, or one where that is not set.
  std::int64_t per_machine = 0;
};

// For each number of ranks, takes a few steps with one rank's share of the batch, after the passes of the stages until then. The
// other ranks of the machine compute beside it; without `neighbours` it computes alone. Where threads.compute is not set the
// ranks of a machine have its processors between them, as in a run. Counts that do not divide the batch have no row. Losses,
// statistics of batch norms and what hooks do at intervals are not counted. Throws ConfigError where the batch has no equal
// shares for `ranks`, where a machine has fewer processors than its ranks have threads, and on a GPU.
ScalingPlan plan_scaling(const Experiment& experiment, const RanksToPlan& asked, const Interconnect& between,
                         Neighbours* neighbours = nullptr);

// How many of `ranks`, each with `threads` compute threads, a machine of so many processors has; 1 or more.
std::int64_t ranks_of_a_machine(std::int64_t ranks, std::int64_t threads, std::int64_t processors);

// Takes steps from `begin` with the share of one of `ranks`, until `go_on`, asked after each step, says no. `begin` and the
// experiment's config are what Neighbours::start() was given.
void take_steps_beside(const Experiment& experiment, std::int64_t ranks, std::string_view begin,
                       const std::function<bool()>& go_on);

// "25G", bits a second -> bytes a second; "10us" -> seconds. Throw ConfigError naming the option.
double parse_bandwidth(const std::string& text);
double parse_latency(const std::string& text);

}  // namespace tessera
