#include "bench/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/difference.h"
#include "core/device/device_work.h"
#include "core/device/turn_order.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kFinalistShare = 1.1;  // times the best median of the sweep
constexpr std::int64_t kMostCalls = 200;
constexpr double kSelfTimedTurnMs = 200;
constexpr std::int64_t kMostSelfTimedCalls = 50;

double seconds_of(const Contestant& contestant, const TurnOptions& options = {}) {
  if (contestant.prepare) contestant.prepare();
  if (options.device.is_cuda()) return seconds_on(options.device, contestant.run);
  const double start = options.clock();
  contestant.run();
  return options.clock() - start;
}

// The first call builds primitives and causes page faults. The second one tells how long a call takes.
std::int64_t calls_per_turn(std::span<const Contestant> contestants, const TurnOptions& options) {
  double slowest = 0;
  for (const Contestant& contestant : contestants) {
    seconds_of(contestant, options);
    slowest = std::max(slowest, seconds_of(contestant, options));
  }
  return std::clamp(static_cast<std::int64_t>(std::ceil(options.seconds / slowest)), std::int64_t{1}, kMostCalls);
}

// Result lines keep every round, and no clock is accurate to more digits.
double four_digits(double ms) { return std::stod(fmt::format("{:.4g}", ms)); }

}  // namespace

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<Samples> interleave(std::size_t sides, std::int64_t rounds, std::int64_t alone,
                                const std::function<double(std::size_t side)>& turn) {
  std::vector<Samples> samples(sides);
  if (sides > 1) {
    for (std::size_t side = 0; side < sides; ++side) {
      for (std::int64_t i = 0; i < std::min(alone, rounds); ++i) samples[side].alone.push_back(turn(side));
    }
  }
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const std::int64_t side : turn_order(round, std::ssize(samples))) {
      samples[static_cast<std::size_t>(side)].rounds.push_back(turn(static_cast<std::size_t>(side)));
    }
  }
  return samples;
}

std::vector<Samples> time_in_turns(std::span<const Contestant> contestants, const TurnOptions& options) {
  const std::int64_t calls = calls_per_turn(contestants, options);
  return interleave(contestants.size(), options.rounds, options.alone, [&](std::size_t side) {
    for (std::int64_t call = 0; call < calls; ++call) seconds_of(contestants[side], options);
    double seconds = 0;
    for (std::int64_t call = 0; call < calls; ++call) seconds += seconds_of(contestants[side], options);
    return seconds / static_cast<double>(calls) * 1e3;
  });
}

std::vector<Samples> time_in_turns(std::span<const SelfTimed> sides, std::int64_t rounds, std::int64_t calls) {
  return interleave(sides.size(), rounds, kTurnsAlone, [&](std::size_t side) {
    std::vector<double> ms = sides[side](1 + calls);
    ms.erase(ms.begin());  // the first run only wakes the threads and refills the caches
    return quantile(ms, 0.5);
  });
}

SelfTimed self_timed(Contestant contestant) {
  return [contestant = std::move(contestant)](std::int64_t count) {
    std::vector<double> ms;
    for (std::int64_t i = 0; i < count; ++i) ms.push_back(seconds_of(contestant) * 1e3);
    return ms;
  };
}

std::int64_t calls_per_turn(std::span<const SelfTimed> sides) {
  double slowest = 0;
  for (const SelfTimed& side : sides) slowest = std::max(slowest, side(2).back());
  return std::clamp(static_cast<std::int64_t>(kSelfTimedTurnMs / slowest), std::int64_t{1}, kMostSelfTimedCalls);
}

std::vector<std::size_t> lowest(std::span<const double> medians, double share, std::size_t most) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < medians.size(); ++i) {
    if (std::isfinite(medians[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return medians[i]; });
  const auto far = [&](std::size_t i) { return medians[i] > share * medians[order.front()]; };
  order.erase(std::ranges::find_if(order, far), order.end());
  if (order.size() > most) order.resize(most);
  return order;
}

std::vector<double> ratios(const std::vector<double>& numerator, const std::vector<double>& denominator) {
  TESSERA_CHECK(numerator.size() == denominator.size(), InternalError, "ratios: ", numerator.size(), " samples over ",
                denominator.size());
  std::vector<double> quotients;
  for (std::size_t i = 0; i < numerator.size(); ++i) quotients.push_back(numerator[i] / denominator[i]);
  return quotients;
}

std::vector<double> ratios(const Samples& numerator, const Samples& denominator) {
  return ratios(numerator.rounds, denominator.rounds);
}

Value to_value(const Samples& samples) {
  Value row = to_value(summarise(samples.rounds));
  Value::List rounds;
  for (const double ms : samples.rounds) rounds.emplace_back(four_digits(ms));
  row.set("rounds", Value::list(std::move(rounds)));
  if (!samples.alone.empty()) row.set("alone", four_digits(quantile(samples.alone, 0.5)));
  return row;
}

Value ratio_value(const std::vector<double>& numerator, const std::vector<double>& denominator) {
  Value row = to_value(summarise(ratios(numerator, denominator)));
  row.set("of_medians", quantile(numerator, 0.5) / quantile(denominator, 0.5));
  return row;
}

Value ratio_value(const Samples& numerator, const Samples& denominator) {
  return ratio_value(numerator.rounds, denominator.rounds);
}

Value timed(const std::string& name, const Samples& samples) {
  Value row = Value::map();
  row.set("name", name);
  row.set("ms", to_value(samples));
  return row;
}

std::size_t fastest(std::span<const Samples> samples) {
  const auto best = std::ranges::min_element(samples, {}, &Samples::median);
  return static_cast<std::size_t>(best - samples.begin());
}

Sweep sweep(std::span<const Contestant> contestants, TurnOptions options) {
  options.alone = 0;  // a sweep only chooses, so it needs no runs alone
  const std::vector<Samples> samples = time_in_turns(contestants, options);
  std::vector<double> medians;
  Value::List rows;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    medians.push_back(samples[i].median());
    Value& row = rows.emplace_back(Value::map());
    row.set("name", contestants[i].name);
    row.set("ms", medians.back());
  }
  Sweep swept{{}, Value::list(std::move(rows))};
  for (const std::size_t index : lowest(medians, kFinalistShare, medians.size())) swept.finalists.push_back(contestants[index]);
  return swept;
}

void check_agreement(std::span<const Contestant> contestants, const std::function<void()>& spoil, double tolerance) {
  const auto result_of = [&](const Contestant& contestant) {
    spoil();
    seconds_of(contestant);
    const Tensor result = contestant.result().to(Device::cpu()).to(DType::f32).contiguous();
    return std::vector<float>(result.data<float>(), result.data<float>() + result.numel());
  };
  const std::vector<float> expected = result_of(contestants.front());
  for (const Contestant& contestant : contestants.subspan(1)) {
    if (!contestant.result) continue;
    const std::vector<float> actual = result_of(contestant);
    TESSERA_CHECK(actual.size() == expected.size(), InternalError, contestant.name, ": result of another size");
    const Difference difference = difference_of(expected, actual);
    TESSERA_CHECK(difference.relative() <= tolerance, NumericError, "results differ: ", contestants.front().name, " and ",
                  contestant.name, " by ", difference.distance, ", the largest value is ", difference.largest, "; must agree to ",
                  tolerance, " of it");
  }
}

}  // namespace tessera::bench
