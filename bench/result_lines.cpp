#include "bench/result_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "core/support/error.h"
#include "train/experiment.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

std::string now() {
  const std::time_t time = std::time(nullptr);
  char text[sizeof "2026-01-01T00:00:00Z"];
  std::strftime(text, sizeof text, "%FT%TZ", std::gmtime(&time));
  return text;
}

}  // namespace

Value to_value(const std::vector<double>& numbers) { return Value::list(Value::List(numbers.begin(), numbers.end())); }

std::vector<double> numbers(const Value& list) {
  std::vector<double> out;
  for (const Value& item : list.as_list()) out.push_back(item.as_double());
  return out;
}

Value describe_surroundings(std::int64_t threads, Device device) {
  ExperimentConfig config;
  config.device = device.name();
  config.threads.compute = threads;
  Value row = describe_environment(config);
  row.erase("host");
  row.set("date", now());
  return row;
}

void publish(const CommonOptions& options, const Value& surroundings, const Value& row) {
  Value line = surroundings;
  line.set("command", options.command);
  for (const auto& [key, mark, value] : row.as_map()) line.set(key, value);
  if (options.dry_run) {
    fmt::print("{}\n", to_json(line));
    return;
  }
  const std::filesystem::path path(options.results);
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::app);
  out << to_json(line) << '\n';
  TESSERA_CHECK(out.flush().good(), IoError, "cannot append to ", options.results);
}

void print_summary(const std::string& name, const Summary& s, const char* unit) {
  fmt::print("{:<8} median {:8.2f}{}  p10 {:8.2f}  p90 {:8.2f}\n", name, s.median, unit, s.p10, s.p90);
}

double counted(const Value& ratio) {
  const double median = ratio.at("median").as_double();
  const Value* const of_medians = ratio.find("of_medians");
  return of_medians != nullptr ? std::min(median, of_medians->as_double()) : median;
}

std::string ratio_text(const Value& ratio) {
  std::string text = fmt::format("{:.2f}x ({:.2f}-{:.2f})", ratio.at("median").as_double(), ratio.at("p10").as_double(),
                                 ratio.at("p90").as_double());
  if (const Value* of_medians = ratio.find("of_medians")) text += fmt::format(", of medians {:.2f}x", of_medians->as_double());
  return text;
}

void Ratios::add(const Value& row) { values.push_back(counted(row.at("ratio"))); }

double Ratios::least() const { return values.empty() ? 0 : *std::ranges::min_element(values); }

double Ratios::geometric_mean() const {
  if (values.empty()) return 0;
  double logs = 0;
  for (const double value : values) logs += std::log(value);
  return std::exp(logs / static_cast<double>(values.size()));
}

Value summary_row(const Ratios& ratios) {
  Value row = Value::map();
  row.set("op", ratios.op);
  row.set("rows", std::ssize(ratios.values));
  row.set("failed", ratios.failed);
  row.set("geometric_mean", ratios.geometric_mean());
  row.set("least", ratios.least());
  return row;
}

Value verdict_row(const Ratios& ratios, const Target& target) {
  Value row = summary_row(ratios);
  row.set("target_of", target.of);
  row.set("target", target.value);
  row.set("reached", ratios.failed == 0 && row.at(target.of).as_double() >= target.value);
  return row;
}

std::string verdict_of(const Ratios& ratios, std::span<const Target> targets) {
  std::string text =
      fmt::format("{}: {} rows{}, geometric_mean {:.3f}, least {:.3f}", ratios.op, ratios.values.size(),
                  ratios.failed > 0 ? fmt::format(" and {} failed", ratios.failed) : "", ratios.geometric_mean(), ratios.least());
  if (targets.empty()) text += "; no target";
  for (const Target& target : targets) {
    const bool reached = verdict_row(ratios, target).at("reached").as_bool();
    text += fmt::format("; {} {}: {}", target.of, target.value, reached ? "reached" : "missed");
  }
  return text;
}

void print_verdict(const std::string& verdict) {
  fmt::print("verdict: {}\n", verdict);
  std::fflush(stdout);
}

}  // namespace tessera::bench
