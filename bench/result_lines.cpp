#include "bench/result_lines.h"

#include <fmt/core.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "train/environment.h"
#include "train/experiment.h"

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
  config.device = device.name();  // where there is a GPU, "auto" is it
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

}  // namespace tessera::bench
