#include "bench/infer_rival.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/result_lines.h"
#include "core/error.h"

namespace tessera::bench {
namespace {

constexpr double kSweepMs = 300;  // a way's runs take about this long, or `least_runs` forwards
constexpr double kFinalistShare = 1.1;  // of the best median
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

// The median of its forwards; empty where it failed.
std::optional<double> measure(TorchRival& rival, const InferWay& way, std::int64_t least_runs, const std::vector<float>& logits,
                              Value& row) {
  const std::optional<std::vector<double>> theirs = logits_of(rival, way.mode, row);
  if (!theirs) return std::nullopt;
  check_logits(logits, *theirs, to_string(way));
  const double once = forwards(rival, way.mode, 1).front();
  const auto runs = std::max(least_runs, std::min(static_cast<std::int64_t>(kSweepMs / once), kMostRuns));
  const double ms = quantile(forwards(rival, way.mode, runs), 0.5);
  row.set("ms", ms);
  return ms;
}

// The same; a rival that ends under a way, as some versions do where they compile, is followed by another.
std::optional<double> measure_or_replace(std::unique_ptr<TorchRival>& rival, const TorchProgram& program, const InferWay& way,
                                         std::int64_t least_runs, const std::vector<float>& logits, Value& row) {
  try {
    return measure(*rival, way, least_runs, logits, row);
  } catch (const IoError& error) {
    row.set("failed", error.what());
    rival = std::make_unique<TorchRival>(program, way.settings);
    return std::nullopt;
  }
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

InferSweep sweep_ways(const TorchProgram& program, std::int64_t least_runs, const std::vector<float>& logits) {
  std::vector<std::pair<double, InferWay>> order;
  Value::List rows;
  for (const TorchSettings& settings : all_torch_settings()) {
    auto rival = std::make_unique<TorchRival>(program, settings);
    const Value modes = rival->environment().at("modes");
    for (const Value& mode : modes.as_list()) {
      const InferWay way{settings, mode.as_string()};
      Value& row = rows.emplace_back(to_value(way));
      const std::optional<double> ms = measure_or_replace(rival, program, way, least_runs, logits, row);
      fmt::print("  {:<60} {}\n", to_string(way), ms ? fmt::format("{:8.2f} ms", *ms) : row.at("failed").as_string());
      if (ms) order.emplace_back(*ms, way);
    }
  }
  std::ranges::stable_sort(order, {}, [](const auto& timed) { return timed.first; });
  InferSweep swept{{}, Value::list(std::move(rows))};
  for (const auto& [ms, way] : order) {
    if (ms <= kFinalistShare * order.front().first && swept.finalists.size() < kFinalists) swept.finalists.push_back(way);
  }
  return swept;
}

}  // namespace tessera::bench
