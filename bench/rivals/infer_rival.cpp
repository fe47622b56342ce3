#include "bench/rivals/infer_rival.h"

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
std::optional<std::vector<double>> logits_of(TorchRival& rival, const std::string& mode, Value& row) {
  const Value answer = rival.ask(str("logits ", mode));
  if (const Value* const failed = answer.find("failed")) {
    row.set("failed", *failed);
    return std::nullopt;
  }
  return numbers(answer.at("logits"));
}

std::vector<double> forwards(TorchRival& rival, const std::string& mode, std::int64_t count) {
  return numbers(rival.ask(str("time ", mode, ' ', count)).at("ms"));
}

void measure(TorchRival& rival, const InferWay& way, std::int64_t least_runs, const std::vector<float>& logits, Value& row) {
  const std::optional<std::vector<double>> theirs = logits_of(rival, way.mode, row);
  if (!theirs) return;
  check_logits(logits, *theirs, to_string(way));
  const double once = forwards(rival, way.mode, 1).front();
  const auto runs = std::max(least_runs, std::min(static_cast<std::int64_t>(kSweepMs / once), kMostRuns));
  row.set("ms", quantile(forwards(rival, way.mode, runs), 0.5));
}

std::vector<InferWay> first_pass(const Value& modes) {
  std::vector<InferWay> ways;
  for (const TorchSettings& settings : all_torch_settings()) {
    for (const Value& mode : modes.as_list()) ways.push_back({settings, mode.as_string()});
  }
  return ways;
}

}  // namespace

std::string to_string(const InferWay& way) { return str("torch ", way.mode, ", ", to_string(way.settings)); }

Value to_value(const InferWay& way) {
  Value value = to_value(way.settings);
  value.erase("compiled");  // the mode tells
  value.set("mode", way.mode);
  return value;
}

double check_logits(const std::vector<float>& ours, const std::vector<double>& theirs, const std::string& rival) {
  TESSERA_CHECK(ours.size() == theirs.size(), NumericError, rival, " gives ", theirs.size(), " logits, ours are ", ours.size());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double distance = std::abs(static_cast<double>(ours[i]) - theirs[i]);
    difference = std::isnan(distance) ? INFINITY : std::max(difference, distance);
    largest = std::max(largest, std::abs(theirs[i]));
  }
  TESSERA_CHECK(difference <= kLogitTolerance * largest, NumericError, "logits differ from those of ", rival, " by ", difference,
                ", the largest is ", largest, "; they must agree to ", kLogitTolerance, " of it");
  return difference / largest;
}

InferRival::InferRival(const TorchProgram& program, const InferWay& way, const std::vector<float>& logits)
    : way_(way), torch_(program, way.settings) {
  logit_difference_ = check_logits(logits, numbers(torch_.ask(str("logits ", way.mode)).at("logits")), to_string(way));
}

std::vector<double> InferRival::run(std::int64_t count) { return forwards(torch_, way_.mode, count); }

TorchSweep<InferWay> sweep_ways(const TorchProgram& program, const InferSweepOptions& options, const std::vector<float>& logits) {
  TorchSettings settings;
  auto rival = std::make_unique<TorchRival>(program, settings);
  const std::vector<InferWay> ways = first_pass(rival->environment().at("modes"));
  const auto measure_way = [&](const InferWay& way, Value& row) {
    std::unique_ptr<TorchRival> current = std::exchange(rival, nullptr);  // goes back only where it has not ended
    if (current == nullptr || settings != way.settings) {
      current = nullptr;  // two at once would share the processor
      current = std::make_unique<TorchRival>(program, settings = way.settings);
    }
    measure(*current, way, options.least_runs, logits, row);
    rival = std::move(current);
  };
  const auto variants_of = [&](const InferWay& way) {
    std::vector<InferWay> variants;
    for (const TorchSettings& other : thread_variants(program, way.settings, options.one_thread)) {
      variants.push_back({other, way.mode});
    }
    return variants;
  };
  return sweep_torch(ways, variants_of, measure_way);
}

}  // namespace tessera::bench
