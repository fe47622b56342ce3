#include "bench/rivals/modes_rival.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "bench/difference.h"
#include "bench/result_lines.h"
#include "core/cpu/fma_peak.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr std::size_t kSample = 97;  // the same as in torch_side.py
constexpr double kSweepMs = 300;  // each way runs for about this long, or for `least_runs` forwards
constexpr std::int64_t kMostRuns = 100;
constexpr double kHopeless = 10;  // times the best median so far: a way as slow as this is not run further

// Empty if torch cannot build the mode. `row` then states the reason.
std::optional<std::vector<double>> values_of(TorchRival& rival, const std::string& mode, Value& row) {
  const Value answer = rival.ask(str("values ", mode));
  if (const Value* const failed = answer.find("failed")) {
    row.set("failed", *failed);
    return std::nullopt;
  }
  return numbers(answer.at("values"));
}

std::vector<double> forwards(TorchRival& rival, const std::string& mode, std::int64_t count) {
  return numbers(rival.ask(str("time ", mode, ' ', count)).at("ms"));
}

void measure(TorchRival& rival, const ModeWay& way, const ModeSweepOptions& options, const std::vector<float>& values,
             double& best, Value& row) {
  const std::optional<std::vector<double>> theirs = values_of(rival, way.mode, row);
  if (!theirs) return;
  check_values(values, *theirs, to_string(way), options.tolerance);
  const double once = forwards(rival, way.mode, 1).front();
  const auto runs = std::max(options.least_runs, std::min(static_cast<std::int64_t>(kSweepMs / once), kMostRuns));
  const double ms = once > kHopeless * best ? once : quantile(forwards(rival, way.mode, runs), 0.5);
  best = std::min(best, ms);
  row.set("ms", ms);
}

std::vector<ModeWay> ways_of(const std::vector<TorchSettings>& all, const Value& modes) {
  std::vector<ModeWay> ways;
  for (const TorchSettings& settings : all) {
    for (const Value& mode : modes.as_list()) ways.push_back({settings, mode.as_string()});
  }
  return ways;
}

// Other settings for the same mode that are worth a run if this one is fast.
std::vector<ModeWay> variants_of(const TorchProgram& program, const ModeSweepOptions& options, const ModeWay& way) {
  std::vector<ModeWay> variants;
  for (const TorchSettings& other : thread_variants(program, way.settings, options.one_thread)) {
    variants.push_back({other, way.mode});
  }
  if (options.tuned_malloc) {
    variants.push_back(way);
    variants.back().settings.tuned_malloc = true;
  }
  if (options.other_isa && __builtin_cpu_supports("avx512vl")) {
    variants.push_back(way);
    variants.back().settings.avx512 = !way.settings.avx512;
  }
  return variants;
}

std::vector<ModeWay> first_pass(const TorchProgram& program, const ModeSweepOptions& options, const Value& modes) {
  std::vector<ModeWay> ways = ways_of(options.settings, modes);
  if (options.only.empty()) return ways;
  for (std::size_t i = 0, count = ways.size(); i < count; ++i) {
    for (const ModeWay& variant : variants_of(program, options, ways[i])) ways.push_back(variant);
  }
  const std::string like = to_string(ways.front());
  std::erase_if(ways, [&](const ModeWay& way) { return to_string(way).find(options.only) == std::string::npos; });
  TESSERA_CHECK(!ways.empty(), ConfigError, "'", options.only, "' is in none of torch's ways; they read like '", like, "'");
  return ways;
}

}  // namespace

std::string to_string(const ModeWay& way) { return str("torch ", way.mode, ", ", to_string(way.settings)); }

Value to_value(const ModeWay& way) {
  Value value = to_value(way.settings);
  value.erase("compiled");  // the mode says this
  value.set("mode", way.mode);
  return value;
}

std::vector<float> sampled_values(const Contestant& ours) {
  if (ours.prepare) ours.prepare();
  ours.run();
  const std::vector<float> all = ours.result().contiguous().to_vector<float>();
  std::vector<float> sample;
  for (std::size_t i = 0; i < all.size(); i += kSample) sample.push_back(all[i]);
  return sample;
}

double check_values(const std::vector<float>& ours, const std::vector<double>& theirs, const std::string& rival,
                    double tolerance) {
  TESSERA_CHECK(ours.size() == theirs.size(), NumericError, rival, " gives ", theirs.size(), " values, ours are ", ours.size());
  const Difference difference = difference_of(theirs, ours);
  TESSERA_CHECK(difference.relative() <= tolerance, NumericError, "values differ from those of ", rival, " by ",
                difference.distance, ", the largest is ", difference.largest, "; they must agree to ", tolerance, " of it");
  return difference.relative();
}

ModesRival::ModesRival(const TorchProgram& program, const ModeWay& way, const std::vector<float>& values, double tolerance)
    : way_(way), torch_(program, way.settings) {
  const std::vector<double> theirs = numbers(torch_.ask(str("values ", way.mode)).at("values"));
  value_difference_ = check_values(values, theirs, to_string(way), tolerance);
}

std::vector<double> ModesRival::run(std::int64_t count) { return forwards(torch_, way_.mode, count); }

TorchSweep<ModeWay> sweep_ways(const TorchProgram& program, const ModeSweepOptions& options, const std::vector<float>& values) {
  TorchSettings settings = options.settings.front();
  auto rival = std::make_unique<TorchRival>(program, settings);
  const std::vector<ModeWay> ways = first_pass(program, options, rival->environment().at("modes"));
  double best = INFINITY;
  const auto measure_way = [&](const ModeWay& way, Value& row) {
    std::unique_ptr<TorchRival> current = std::exchange(rival, nullptr);  // given back only if it has not ended
    if (current == nullptr || settings != way.settings) {
      current = nullptr;  // ends it first, because two processes would share the processor
      current = std::make_unique<TorchRival>(program, settings = way.settings);
    }
    measure(*current, way, options, values, best, row);
    rival = std::move(current);
  };
  const auto variants = [&](const ModeWay& way) {
    return options.only.empty() ? variants_of(program, options, way) : std::vector<ModeWay>{};
  };
  return sweep_torch(ways, variants, measure_way);
}

std::vector<TorchSettings> first_settings(bool images) {
  std::vector<TorchSettings> all = all_torch_settings();
  std::erase_if(all, [&](const TorchSettings& settings) { return settings.tuned_malloc || (settings.channels_last && !images); });
  return all;
}

void compare_with_modes(Value& row, const SelfTimed& ours, const std::vector<float>& values, const ModesComparison& how) {
  const auto swept = sweep_ways(how.program, how.sweep, values);
  std::vector<std::unique_ptr<ModesRival>> rivals;
  for (const ModeWay& way : swept.finalists)
    rivals.push_back(std::make_unique<ModesRival>(how.program, way, values, how.sweep.tolerance));
  const std::vector<FairProduct> products = fair_products(rivals, cpu::fma_peak_gflops);
  const std::size_t finalists = rivals.size();
  if (!how.aside.empty()) {
    const ModeWay aside{swept.finalists.front().settings, how.aside};
    rivals.push_back(std::make_unique<ModesRival>(how.program, aside, values, how.sweep.tolerance));
  }
  std::vector<SelfTimed> sides{ours};
  for (const auto& rival : rivals) sides.emplace_back([&rival](std::int64_t count) { return rival->run(count); });
  const std::vector<Samples> samples = time_in_turns(sides, how.rounds, calls_per_turn(sides));
  const auto theirs = samples.begin() + 1;
  const FinalistTimes times(samples[0], {theirs, theirs + static_cast<std::ptrdiff_t>(finalists)});

  row.set("rounds", how.rounds);
  row.set("sweep_runs", how.sweep.least_runs);
  report_times(row, times, swept.finalists);
  if (!how.aside.empty()) {
    Value aside = Value::map();
    aside.set("mode", how.aside);
    aside.set("ms", to_value(samples.back()));
    row.set("torch_aside", aside);
    row.set("aside_ratio", ratio_value(samples.back(), times.ours));
  }
  row.set("value_difference", rivals[times.best]->value_difference());
  row.set("torch", rivals[times.best]->torch().environment());
  row.set("torch_sweep", swept.rows);
  set_product(row, products[times.best]);
}

}  // namespace tessera::bench
