#include "train/plan/scaling_plan.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "compress/timing/summary.h"
#include "core/comm/communicator.h"
#include "core/device/decisions.h"
#include "core/ops/arithmetic.h"
#include "core/support/error.h"
#include "train/plan/check.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/rank_messages.h"
#include "train/run/run_state.h"

namespace tessera {
namespace {

constexpr int kWarmUp = 3;  // steps in which clocks choose kernels and memory is allocated
constexpr int kTimed = 9;

// Messages in a row that go up a binary tree of the ranks, or down it.
double levels(std::int64_t ranks) { return std::ceil(std::log2(static_cast<double>(ranks))); }

double agreement_seconds(std::int64_t ranks, const Interconnect& between) { return 2 * levels(ranks) * between.latency; }

double seconds_of(const GradientMessage& message, std::int64_t ranks, const Interconnect& between) {
  const auto n = static_cast<double>(ranks);
  return agreement_seconds(ranks, between) +
         2 * (n - 1) * (between.latency + static_cast<double>(message.bytes) / n / between.bandwidth);
}

// 1, 2, 4, ... and `ranks`.
std::vector<std::int64_t> counts_up_to(std::int64_t ranks) {
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 1; count < ranks; count *= 2) counts.push_back(count);
  counts.push_back(ranks);
  return counts;
}

using Clock = std::chrono::steady_clock;

// Stands in for the communicator of rank 0. The other ranks do not exist; each is assumed to have computed the same values.
class Absent final : public Communicator {
 public:
  explicit Absent(std::int64_t size) : size_(static_cast<int>(size)) {}
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return size_; }
  // Messages without a name carry something other than gradients and are not recorded.
  void all_reduce(const Tensor& values, std::string_view name) override {
    check_reducible(values);
    const std::chrono::duration<double> ready = Clock::now() - begin_;
    if (!name.empty()) {
      messages_.push_back({.bytes = values.bytes(), .ready = ready.count(), .waited_for = name.starts_with(PowerSgd::kMessages)});
    }
    cpu::affine(values, size_, 0, values);
  }
  void broadcast(std::string&) override {}
  std::vector<std::string> all_gather(std::string_view bytes) override {
    return std::vector(static_cast<std::size_t>(size_), std::string(bytes));
  }
  std::uint64_t any(std::uint64_t flags) override { return flags; }
  void barrier() override {}
  void watch(std::function<void(int rank)>) override {}
  Communicator* beside() override { return nullptr; }  // no thread sums in the background: all_reduce() gets ready gradients
  [[noreturn]] void fail(int, std::string_view why) override { throw InternalError(std::string(why)); }
  [[noreturn]] void end_all(int) override { throw InternalError("plan: there are no ranks to end"); }

  void begin_step() {
    messages_.clear();
    begin_ = Clock::now();
  }
  const std::vector<GradientMessage>& messages() const noexcept { return messages_; }  // of the current step

 private:
  int size_;
  Clock::time_point begin_;
  std::vector<GradientMessage> messages_;
};

// The beginning of the first stage that trains, encoded as a rank is told of it.
std::string begin_of_training(const ExperimentConfig& config, RunInputs inputs) {
  RunState state(config, std::move(inputs.data));
  state.start(std::move(inputs.initial));
  for (; !state.stage().train; state.next_stage()) {
    state.prepare_stage();
    state.end_stage();
  }
  state.prepare_stage();
  return encode_checkpoint(state.manifest(), state.parts());
}

// Adds the choices of clocks to `begin`, because a rank is told of them too.
std::string with_decisions(const std::string& begin, const DecisionMap& taken) {
  const Checkpoint checkpoint = decode_checkpoint(begin);
  return encode_checkpoint(checkpoint.manifest, checkpoint.parts, taken);
}

// Repeats the stage's first step and returns its milliseconds. A stage may have fewer steps than are timed.
double step_once(RunState& state, Absent& others) {
  others.begin_step();
  const Clock::time_point start = Clock::now();
  state.step();
  const std::chrono::duration<double, std::milli> took = Clock::now() - start;
  state.position().stage_step = 0;
  return took.count();
}

// Medians of the timed steps, while `together` - 1 other processes take steps on this machine.
ScalingRow measured_row(RunState& state, Absent& others, const Interconnect& between, std::int64_t together) {
  std::vector<double> step_ms, exposed_ms;
  for (int i = 0; i < kTimed; ++i) {
    step_ms.push_back(step_once(state, others));
    exposed_ms.push_back(1e3 * exposed_seconds(others.messages(), others.size(), between));
  }
  return {.ranks = others.size(),
          .samples = state.config().data.batch / others.size(),
          .together = together,
          .compute_ms = quantile(step_ms, 0.5),
          .exchange_ms = 1e3 * exchange_seconds(others.messages(), others.size(), between),
          .exposed_ms = quantile(exposed_ms, 0.5),
          .tree_ms = 1e3 * tree_seconds(others.messages(), others.size(), between)};
}

// A machine that ranks will run on. It has as many processors as this one.
class Machine {
 public:
  // `threads`: threads.compute, or 0 if it is not set.
  Machine(const RanksToPlan& asked, std::int64_t threads) : threads_(threads), processors_(resolve_compute_threads(0)) {
    most_ = asked.per_machine > 0 ? asked.per_machine : ranks_of_a_machine(asked.ranks, this->threads(1), processors_);
    const std::int64_t needed = ranks(asked.ranks) * std::max<std::int64_t>(1, threads);
    TESSERA_CHECK(needed <= processors_ || most_ == 1, ConfigError, "--ranks-per-machine: ", ranks(asked.ranks),
                  " ranks with their compute threads need ", needed, " processors; this machine has ", processors_);
  }
  std::int64_t ranks(std::int64_t of) const { return std::min(of, most_); }
  // Compute threads of each rank, given the number of ranks.
  std::int64_t threads(std::int64_t ranks) const { return threads_ > 0 ? threads_ : processors_ / this->ranks(ranks); }

 private:
  std::int64_t threads_, processors_;
  std::int64_t most_ = 1;  // ranks at most
};

bool trains(const ExperimentConfig& config) {
  return std::ranges::any_of(config.stages, [](const StageConfig& stage) { return stage.train.has_value(); });
}

// Parses a number with a unit, such as "2.5us" -> 2.5e-6. `endings` has the factor of each unit.
double parse_quantity(const std::string& text, const std::map<std::string_view, double>& endings, const char* option,
                      const char* example) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto found = endings.find(std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)));
  TESSERA_CHECK(error == std::errc() && std::isfinite(number) && number > 0 && found != endings.end(), ConfigError, option, ": '",
                text, "' is not one; write ", example);
  return number * found->second;
}

}  // namespace

double exchange_seconds(std::span<const GradientMessage> messages, std::int64_t ranks, const Interconnect& between) {
  if (ranks == 1) return 0;
  double seconds = 0;
  for (const GradientMessage& message : messages) seconds += seconds_of(message, ranks, between);
  return seconds;
}

double tree_seconds(std::span<const GradientMessage> messages, std::int64_t ranks, const Interconnect& between) {
  double seconds = 0;
  for (const GradientMessage& message : messages) {
    seconds += agreement_seconds(ranks, between) +
               2 * levels(ranks) * (between.latency + static_cast<double>(message.bytes) / between.bandwidth);
  }
  return seconds;
}

double exposed_seconds(std::span<const GradientMessage> messages, std::int64_t ranks, const Interconnect& between) {
  if (ranks == 1) return 0;
  double last = 0, end = 0, waited = 0;
  for (const GradientMessage& message : messages) {
    const double seconds = seconds_of(message, ranks, between);
    if (message.waited_for) {
      waited += seconds;
    } else {
      last = message.ready;
      end = std::max(end, last) + seconds;
    }
  }
  return end - last + waited;
}

void ScalingRow::fields(Fields& f) {
  f.add("ranks", ranks, {.help = "processes"});
  f.add("samples", samples, {.help = "of a step, for each of them"});
  f.add("together", together, {.help = "of the processes, computing at once on this machine while that was measured"});
  f.add("compute_ms", compute_ms, {.help = "measured here", .clock = true});
  f.add("exchange_ms", exchange_ms, {.help = "of gradients", .clock = true});
  f.add("exposed_ms", exposed_ms, {.help = "of that, what does not pass during backward", .clock = true});
  f.add("tree_ms", tree_ms, {.help = "that a tree would take in its place", .clock = true});
  f.add_computed("step_ms", step_ms(), {.help = "computing and what is exposed", .clock = true});
  f.add("speedup", speedup, {.help = "over one process", .clock = true});
  f.add_computed("efficiency", efficiency(), {.help = "that by the number of processes", .clock = true});
}

void ScalingPlan::fields(Fields& f) {
  f.add("stage", stage, {.help = "whose step it is: the first that trains"});
  f.add("gradient_bytes", gradient_bytes, {.help = "that are summed in a step"});
  f.add("messages", messages, {.help = "that they are sent in"});
  f.add("rows", rows, {.help = "of 1, 2, 4, ... processes and of as many as were asked for"});
}

std::int64_t ranks_of_a_machine(std::int64_t ranks, std::int64_t threads, std::int64_t processors) {
  return std::min(ranks, std::max<std::int64_t>(1, processors / threads));
}

ScalingPlan plan_scaling(const Experiment& experiment, const RanksToPlan& asked, const Interconnect& between,
                         Neighbours* neighbours) {
  ExperimentConfig config = experiment.config;
  TESSERA_CHECK(trains(config), ConfigError, "--ranks: no stage of ", config.name, " trains");
  TESSERA_CHECK(resolve_device(config.device).is_cpu(), ConfigError, "--ranks: device is ", config.device,
                "; what several ranks take is predicted for CPUs alone: set device: cpu");
  const Machine machine(asked, config.threads.compute);
  settle_for_run(config);
  set_compute_threads(config.threads.compute);
  RunInputs inputs = check_experiment(experiment);
  const DataSplits data = inputs.data;
  const auto unequal = [&](std::int64_t count) {
    const LoaderOptions options{
        .batch = config.data.batch, .drop_last = config.data.drop_last, .shares = static_cast<int>(count)};
    return why_no_equal_shares(data.train.size(), options);
  };
  TESSERA_CHECK(unequal(asked.ranks).empty(), ConfigError, "--ranks: ", unequal(asked.ranks));
  const DecisionScope decisions({.measure = !config.deterministic});
  const std::string begin = begin_of_training(config, std::move(inputs));
  ScalingPlan plan;
  for (const std::int64_t count : counts_up_to(asked.ranks)) {
    if (!unequal(count).empty()) continue;
    const std::int64_t together = neighbours == nullptr ? 1 : machine.ranks(count);
    config.threads.compute = machine.threads(count);
    set_compute_threads(config.threads.compute);
    Absent others(count);
    RunState state(config, data, others);
    state.load(decode_checkpoint(begin));
    state.begin_training();
    for (int i = 0; i < kWarmUp; ++i) step_once(state, others);
    if (together > 1) neighbours->start(together - 1, config, count, with_decisions(begin, decisions.taken()));
    plan.rows.push_back(measured_row(state, others, between, together));
    if (together > 1) neighbours->stop();
    plan.stage = state.stage().name;
    plan.messages = std::ssize(others.messages());
    plan.gradient_bytes = 0;
    for (const GradientMessage& message : others.messages()) plan.gradient_bytes += static_cast<std::int64_t>(message.bytes);
    plan.rows.back().speedup = plan.rows.front().step_ms() / plan.rows.back().step_ms();
  }
  return plan;
}

void take_steps_beside(const Experiment& experiment, std::int64_t ranks, std::string_view begin,
                       const std::function<bool()>& go_on) {
  ExperimentConfig config = experiment.config;
  settle_for_run(config);
  set_compute_threads(config.threads.compute);
  const DataSplits data = check_experiment(experiment).data;
  const Checkpoint checkpoint = decode_checkpoint(begin);
  const DecisionScope decisions({.known = recorded_decisions(checkpoint.manifest)});
  Absent others(ranks);
  RunState state(config, data, others);
  state.load(checkpoint);
  state.begin_training();
  do {
    step_once(state, others);
  } while (go_on());
}

double parse_bandwidth(const std::string& text) {
  return parse_quantity(text, {{"G", 1e9 / 8}, {"M", 1e6 / 8}}, "--bandwidth", "25G for 25 Gbit/s, or 800M");
}

double parse_latency(const std::string& text) {
  return parse_quantity(text, {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}}, "--latency", "10us, 500ns or 1ms");
}

}  // namespace tessera
