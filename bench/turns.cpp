#include "bench/turns.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"

namespace tessera::bench {
namespace {

constexpr double kFinalistShare = 1.1;  // of the best median in the sweep
constexpr std::int64_t kMostCalls = 200;

double seconds_of(const Contestant& contestant) {
  using Clock = std::chrono::steady_clock;
  if (contestant.prepare) contestant.prepare();
  const auto start = Clock::now();
  contestant.run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The first call builds primitives and faults pages in; the second says how long a call takes.
std::int64_t calls_per_turn(std::span<const Contestant> contestants, double seconds) {
  double slowest = 0;
  for (const Contestant& contestant : contestants) {
    seconds_of(contestant);
    slowest = std::max(slowest, seconds_of(contestant));
  }
  return std::clamp(static_cast<std::int64_t>(std::ceil(seconds / slowest)), std::int64_t{1}, kMostCalls);
}

}  // namespace

std::vector<Samples> time_in_turns(std::span<const Contestant> contestants, const TurnOptions& options) {
  const std::int64_t calls = calls_per_turn(contestants, options.seconds);
  const std::size_t sides = contestants.size();
  std::vector<Samples> samples(sides);
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    for (std::size_t turn = 0; turn < sides; ++turn) {
      const std::size_t side = (turn + static_cast<std::size_t>(round)) % sides;
      seconds_of(contestants[side]);  // brings its memory back into the caches: the side before it used other
      double seconds = 0;
      for (std::int64_t call = 0; call < calls; ++call) seconds += seconds_of(contestants[side]);
      samples[side].push_back(seconds / static_cast<double>(calls) * 1e3);
    }
  }
  return samples;
}

Samples ratios(const Samples& numerator, const Samples& denominator) {
  TESSERA_CHECK(numerator.size() == denominator.size(), InternalError, "ratios: ", numerator.size(), " samples over ",
                denominator.size());
  Samples quotients;
  for (std::size_t i = 0; i < numerator.size(); ++i) quotients.push_back(numerator[i] / denominator[i]);
  return quotients;
}

std::size_t fastest(std::span<const Samples> samples) {
  const auto best = std::ranges::min_element(samples, {}, [](const Samples& s) { return quantile(s, 0.5); });
  return static_cast<std::size_t>(best - samples.begin());
}

Sweep sweep(std::span<const Contestant> contestants, const TurnOptions& options) {
  const std::vector<Samples> samples = time_in_turns(contestants, options);
  std::vector<std::pair<double, std::size_t>> order;
  Value::List rows;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    order.emplace_back(quantile(samples[i], 0.5), i);
    Value& row = rows.emplace_back(Value::map());
    row.set("name", contestants[i].name);
    row.set("ms", order.back().first);
  }
  std::ranges::sort(order);
  Sweep swept{{}, Value::list(std::move(rows))};
  for (const auto& [ms, index] : order) {
    if (ms <= kFinalistShare * order.front().first) swept.finalists.push_back(contestants[index]);
  }
  return swept;
}

void check_agreement(std::span<const Contestant> contestants, const std::function<void()>& spoil, double tolerance) {
  const auto result_of = [&](const Contestant& contestant) {
    spoil();
    seconds_of(contestant);
    const Tensor result = contestant.result().contiguous();
    return std::vector<float>(result.data<float>(), result.data<float>() + result.numel());
  };
  const std::vector<float> expected = result_of(contestants.front());
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (const Contestant& contestant : contestants.subspan(1)) {
    if (!contestant.result) continue;
    const std::vector<float> actual = result_of(contestant);
    TESSERA_CHECK(actual.size() == expected.size(), InternalError, contestant.name, ": result of another size");
    double difference = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double distance = std::abs(static_cast<double>(actual[i]) - expected[i]);
      difference = std::isnan(distance) ? INFINITY : std::max(difference, distance);
    }
    TESSERA_CHECK(difference <= tolerance * largest, NumericError, "results differ: ", contestants.front().name, " and ",
                  contestant.name, " by ", difference, ", the largest value is ", largest, "; must agree to ", tolerance,
                  " of it");
  }
}

}  // namespace tessera::bench
