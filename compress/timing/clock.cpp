#include "compress/timing/clock.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "core/cpu/core_wait.h"
#include "core/device/device_work.h"
#include "core/device/turn_order.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {
namespace {

// In a quiet reading a thread waits for a core at most this share of it, or this long if that is more: waking takes time.
constexpr double kQuietShare = 0.05;
constexpr double kQuietSeconds = 200e-6;
constexpr int kMostAgain = 3;  // times that one round is read again
constexpr double kMuch = 0.25;  // of the rounds

void prepare(const Contender& contender) {
  if (contender.prepare) contender.prepare();
}

// The work that one reading of the clock measures.
struct Reading {
  Contender work;
  std::int64_t runs = 1;  // of the contender, in one call of `work`
};

void run_often(const Contender& contender, std::int64_t runs) {
  for (std::int64_t run = 0; run < runs; ++run) contender.run();
}

std::shared_ptr<DeviceGraph> record(const Contender& contender, Device device, std::int64_t runs) {
  prepare(contender);
  std::shared_ptr<DeviceGraph> graph = record_graph(device, [&] { run_often(contender, runs); });
  graph->replay();  // the first launch uploads it to the device
  return graph;
}

// Launches of a single run each tell how many runs to record in a row, so that no launches come between them.
Reading replayed(const Contender& contender, Device device) {
  std::shared_ptr<DeviceGraph> graph = record(contender, device, 1);
  const std::int64_t runs = runs_per_reading([&](std::int64_t count) {
    return seconds_on(device, [&] {
      for (std::int64_t run = 0; run < count; ++run) graph->replay();
    });
  });
  if (runs > 1) {
    graph.reset();  // so that the next graph can use its memory
    graph = record(contender, device, runs);
  }
  return {.work = {.run = [graph] { graph->replay(); }}, .runs = runs};
}

Reading queued(const Contender& contender, Device device) {
  prepare(contender);
  const std::int64_t runs =
      runs_per_reading([&](std::int64_t count) { return seconds_on(device, [&] { run_often(contender, count); }); });
  return {.work = {.run = [contender, runs] { run_often(contender, runs); }, .prepare = contender.prepare}, .runs = runs};
}

// All contenders are read in the same way, so that they can be compared.
std::vector<Reading> readings_on_gpu(std::span<const Contender> contenders, Device device, bool& all_replayed) {
  std::vector<Reading> readings;
  try {
    for (const Contender& contender : contenders) readings.push_back(replayed(contender, device));
    all_replayed = true;
    return readings;
  } catch (const std::exception& error) {  // as in StepGraph: reading the device while recording throws InternalError
    log_warning(
        str("timing on ", device, ": the work could not be recorded, and is timed as the host queues it: ", error.what()));
  }
  readings.clear();
  for (const Contender& contender : contenders) readings.push_back(queued(contender, device));
  return readings;
}

// The times of a round.
struct Round {
  std::vector<double> ms;  // per side, for all runs of its reading
  double wait = 0;  // the longest wait of a side's threads, relative to the most in a quiet reading
  bool quiet() const { return wait <= 1; }
};

// Reads each side once, in the order of the round.
Round read_round(std::span<const Reading> readings, std::int64_t round, Device device, cpu::CoreWait* cores = nullptr) {
  Round taken{.ms = std::vector<double>(readings.size())};
  for (const std::int64_t side : turn_order(round, std::ssize(readings))) {
    const auto i = static_cast<std::size_t>(side);
    prepare(readings[i].work);
    if (cores != nullptr) cores->begin();
    const double seconds = seconds_on(device, readings[i].work.run);
    if (cores != nullptr) taken.wait = std::max(taken.wait, cores->seconds() / std::max(kQuietShare * seconds, kQuietSeconds));
    taken.ms[i] = 1e3 * seconds;
  }
  return taken;
}

// Reads the rounds that are kept. On the CPU, rounds that are not quiet are read again, up to `spare` times in all.
class KeptRounds {
 public:
  KeptRounds(std::span<const Reading> readings, Device device, std::int64_t spare)
      : readings_(readings), device_(device), trial_(spare / 4), spare_(spare) {
    if (device.is_cpu()) cores_.emplace();
  }

  void read(std::int64_t round, Timings& timings) {
    const Round kept = quietest(round);
    for (std::size_t i = 0; i < kept.ms.size(); ++i) {
      timings.ms[i].push_back(kept.ms[i] / static_cast<double>(readings_[i].runs));
    }
    ++timings.disturbance.of;
    timings.disturbance.rounds += kept.quiet() ? 0 : 1;
  }

 private:
  Round read_once(std::int64_t round) { return read_round(readings_, round, device_, cores_ ? &*cores_ : nullptr); }

  Round quietest(std::int64_t round) {
    Round best = read_once(round);
    for (int again = 0; again < kMostAgain && !best.quiet() && again_ < spare_; ++again) {
      Round other = read_once(round);
      ++again_;
      helped_ += other.quiet() ? 1 : 0;
      if (again_ >= trial_ && helped_ == 0) spare_ = 0;  // it will not get quiet: perhaps there are fewer cores than threads
      if (other.wait < best.wait) best = std::move(other);
    }
    return best;
  }

  std::span<const Reading> readings_;
  Device device_;
  std::int64_t trial_, spare_;
  std::int64_t again_ = 0, helped_ = 0;
  std::optional<cpu::CoreWait> cores_;
};

// Counts the host's time, with preparations. It stops at a round that takes no time, as with a test's clock.
void run_for(double seconds, const std::function<void(std::int64_t round)>& round_of) {
  double spent = 0;
  for (std::int64_t round = 0; spent < seconds; ++round) {
    const double taken = seconds_on(Device::cpu(), [&] { round_of(round); });
    if (taken <= 0) return;
    spent += taken;
  }
}

}  // namespace

std::int64_t runs_per_reading(const std::function<double(std::int64_t)>& seconds_of) {
  std::int64_t runs = 1;
  while (runs < kMostRuns) {
    const double seconds = seconds_of(runs);
    if (seconds >= kReadingSeconds) break;
    const double wanted = seconds > 0 ? std::ceil(static_cast<double>(runs) * kReadingSeconds / seconds) : 0.0;
    const bool told = wanted > 0 && wanted < static_cast<double>(kMostRuns);
    runs = told ? std::max(2 * runs, static_cast<std::int64_t>(wanted)) : kMostRuns;
    runs = std::min(runs, kMostRuns);
  }
  return runs;
}

bool Disturbance::much() const { return static_cast<double>(rounds) > kMuch * static_cast<double>(of); }

void warn_of(const Disturbance& disturbance, const std::string& what) {
  if (!disturbance.much()) return;
  log_warning(str("timing ", what, ": threads waited for a core in ", disturbance.rounds, " of ", disturbance.of,
                  " rounds, because other programs compute beside this one or it has more threads than cores; its ratios can be "
                  "far from those of a quiet machine. With OMP_WAIT_POLICY=passive other programs slow it down less"));
}

Timings time_in_turn(std::span<const Contender> contenders, const Turns& turns) {
  std::vector<Reading> readings;
  for (const Contender& contender : contenders) readings.push_back({.work = contender});
  const auto unkept_round = [&](std::int64_t round) { read_round(readings, round, turns.device); };
  for (int round = 0; round < turns.warm_up; ++round) unkept_round(round);
  Timings timings;
  if (turns.device.is_cuda()) readings = readings_on_gpu(contenders, turns.device, timings.replayed);
  timings.ms.resize(readings.size());
  KeptRounds kept(readings, turns.device, turns.rounds * turns.batches);
  for (std::int64_t batch = 0; batch < turns.batches; ++batch) {
    if (batch > 0) run_for(kBetweenSeconds, unkept_round);
    for (std::int64_t round = batch * turns.rounds; round < (batch + 1) * turns.rounds; ++round) {
      kept.read(round, timings);
    }
  }
  return timings;
}

}  // namespace tessera
