#include "bench/rivals/modes_rival.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "bench/result_lines.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kSweepMs = 300;  // a way's runs take about this long, or `least_runs` forwards
constexpr std::int64_t kMostRuns = 100;

// Empty where torch cannot build the mode: `row` then says why.
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

void measure(TorchRival& rival, const ModeWay& way, std::int64_t least_runs, const std::vector<float>& values, Value& row) {
  const std::optional<std::vector<double>> theirs = values_of(rival, way.mode, row);
  if (!theirs) return;
  check_values(values, *theirs, to_string(way));
  const double once = forwards(rival, way.mode, 1).front();
  const auto runs = std::max(least_runs, std::min(static_cast<std::int64_t>(kSweepMs / once), kMostRuns));
  row.set("ms", quantile(forwards(rival, way.mode, runs), 0.5));
}

std::vector<ModeWay> first_pass(const std::vector<TorchSettings>& all, const Value& modes) {
  std::vector<ModeWay> ways;
  for (const TorchSettings& settings : all) {
    for (const Value& mode : modes.as_list()) ways.push_back({settings, mode.as_string()});
  }
  return ways;
}

}  // namespace

std::string to_string(const ModeWay& way) { return str("torch ", way.mode, ", ", to_string(way.settings)); }

Value to_value(const ModeWay& way) {
  Value value = to_value(way.settings);
  value.erase("compiled");  // the mode tells
  value.set("mode", way.mode);
  return value;
}

double check_values(const std::vector<float>& ours, const std::vector<double>& theirs, const std::string& rival) {
  TESSERA_CHECK(ours.size() == theirs.size(), NumericError, rival, " gives ", theirs.size(), " values, ours are ", ours.size());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double distance = std::abs(static_cast<double>(ours[i]) - theirs[i]);
    difference = std::isnan(distance) ? INFINITY : std::max(difference, distance);
    largest = std::max(largest, std::abs(theirs[i]));
  }
  TESSERA_CHECK(difference <= kValueTolerance * largest, NumericError, "values differ from those of ", rival, " by ", difference,
                ", the largest is ", largest, "; they must agree to ", kValueTolerance, " of it");
  return difference / largest;
}

ModesRival::ModesRival(const TorchProgram& program, const ModeWay& way, const std::vector<float>& values)
    : way_(way), torch_(program, way.settings) {
  value_difference_ = check_values(values, numbers(torch_.ask(str("values ", way.mode)).at("values")), to_string(way));
}

std::vector<double> ModesRival::run(std::int64_t count) { return forwards(torch_, way_.mode, count); }

TorchSweep<ModeWay> sweep_ways(const TorchProgram& program, const ModeSweepOptions& options, const std::vector<float>& values) {
  TorchSettings settings = options.settings.front();
  auto rival = std::make_unique<TorchRival>(program, settings);
  const std::vector<ModeWay> ways = first_pass(options.settings, rival->environment().at("modes"));
  const auto measure_way = [&](const ModeWay& way, Value& row) {
    std::unique_ptr<TorchRival> current = std::exchange(rival, nullptr);  // goes back only where it has not ended
    if (current == nullptr || settings != way.settings) {
      current = nullptr;  // two at once would share the processor
      current = std::make_unique<TorchRival>(program, settings = way.settings);
    }
    measure(*current, way, options.least_runs, values, row);
    rival = std::move(current);
  };
  const auto variants_of = [&](const ModeWay& way) {
    std::vector<ModeWay> variants;
    for (const TorchSettings& other : thread_variants(program, way.settings, options.one_thread)) {
      variants.push_back({other, way.mode});
    }
    if (options.tuned_malloc) {
      variants.push_back(way);
      variants.back().settings.tuned_malloc = true;
    }
    return variants;
  };
  return sweep_torch(ways, variants_of, measure_way);
}

}  // namespace tessera::bench
