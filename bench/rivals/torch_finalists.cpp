#include "bench/rivals/torch_finalists.h"

#include <fmt/format.h>

#include "bench/result_lines.h"

namespace tessera::bench {

void print_swept(const std::string& way, const Value& row) {
  const Value* const failed = row.find("failed");
  fmt::print("  {:<68} {}\n", way, failed != nullptr ? failed->as_string() : fmt::format("{:8.2f} ms", row.at("ms").as_double()));
}

FinalistTimes::FinalistTimes(Samples our_samples, std::vector<Samples> their_samples)
    : ours(std::move(our_samples)), theirs(std::move(their_samples)), best(fastest(theirs)) {}

void set_times(Value& row, const FinalistTimes& times, const std::vector<Value>& ways) {
  row.set("tessera_ms", to_value(times.ours));
  row.set("torch_ms", to_value(times.theirs[times.best]));
  row.set("ratio", ratio_value(times.theirs[times.best], times.ours));
  row.set("torch_settings", ways[times.best]);
  Value::List finalists = ways;
  for (std::size_t i = 0; i < finalists.size(); ++i) finalists[i].set("ms", to_value(times.theirs[i]));
  row.set("torch_finalists", Value::list(std::move(finalists)));
}

void print_times(const FinalistTimes& times, const std::vector<std::string>& ways) {
  for (std::size_t i = 0; i < ways.size(); ++i) {
    fmt::print("  {}{:<{}} median {:8.2f} ms\n", i == times.best ? "rival: " : "", ways[i], i == times.best ? 61 : 68,
               times.theirs[i].median());
  }
  print_summary("  tessera", summarise(times.ours.rounds), " ms");
  print_summary("  torch", summarise(times.theirs[times.best].rounds), " ms");
  fmt::print("    ratio {}\n", ratio_text(ratio_value(times.theirs[times.best], times.ours)));
}

}  // namespace tessera::bench
