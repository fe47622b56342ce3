// Which of torch's ways is the rival: short runs of all of them, then of others around the fastest; the best of these are timed
// in every round beside ours, because a short run alone often takes one that is not the fastest.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "bench/turns.h"
#include "core/config/value.h"
#include "core/support/error.h"

namespace tessera::bench {

inline constexpr std::size_t kLeaders = 2;  // whose variants the second pass runs
inline constexpr std::size_t kFinalists = 3;
inline constexpr double kFinalistShare = 1.5;  // of the best median: a machine that is shared moves short runs by tens of percent

struct FinalistRule {
  double share = kFinalistShare;
  std::size_t most = kFinalists;
};

template <class Way>
struct TorchSweep {
  std::vector<Way> finalists;  // the fastest first, within the rule's share of its median; at most as many as it says
  Value rows;  // of every way: its settings, and "ms" or why it "failed"
};

void print_swept(const std::string& way, const Value& row);

// Runs `measure(way, row)` of each of `ways` and then of `variants_of(way)` of the kLeaders fastest. It sets the row's "ms", or
// "failed"; a torch that ends under a way, as some versions do where they compile, has failed too. Throws InternalError where all
// have.
template <class Way, class VariantsOf, class Measure>
TorchSweep<Way> sweep_torch(std::vector<Way> ways, const VariantsOf& variants_of, const Measure& measure,
                            const FinalistRule& rule = {}) {
  std::vector<double> medians;
  Value::List rows;
  const auto run_new_ways = [&] {
    for (std::size_t i = medians.size(); i < ways.size(); ++i) {
      Value& row = rows.emplace_back(to_value(ways[i]));
      try {
        measure(ways[i], row);
      } catch (const IoError& error) {
        row.set("failed", error.what());
      }
      print_swept(to_string(ways[i]), row);
      medians.push_back(row.find("failed") != nullptr ? INFINITY : row.at("ms").as_double());
    }
  };
  run_new_ways();
  for (const std::size_t leader : lowest(medians, INFINITY, kLeaders)) {
    const std::vector<Way> variants = variants_of(ways[leader]);
    ways.insert(ways.end(), variants.begin(), variants.end());
  }
  run_new_ways();
  TorchSweep<Way> swept{{}, Value::list(std::move(rows))};
  for (const std::size_t index : lowest(medians, rule.share, rule.most)) swept.finalists.push_back(ways[index]);
  TESSERA_CHECK(!swept.finalists.empty(), InternalError, "torch fails in each of its ways: there is no rival");
  return swept;
}

// What the rounds gave.
struct FinalistTimes {
  FinalistTimes(Samples our_samples, std::vector<Samples> their_samples);

  Samples ours;
  std::vector<Samples> theirs;  // of each finalist
  std::size_t best;  // of the finalists: the lowest median, the rival
};

// Sets "tessera_ms", and of the rival "torch_ms", "ratio" (round by round, over ours) and "torch_settings"; "torch_finalists" has
// the "ms" of all. `ways` are the finalists as values.
void set_times(Value& row, const FinalistTimes& times, const std::vector<Value>& ways);
void print_times(const FinalistTimes& times, const std::vector<std::string>& ways);

// Both, of the finalists of a sweep.
template <class Way>
void report_times(Value& row, const FinalistTimes& times, const std::vector<Way>& finalists) {
  std::vector<Value> values;
  std::vector<std::string> names;
  for (const Way& way : finalists) {
    values.push_back(to_value(way));
    names.push_back(to_string(way));
  }
  print_times(times, names);
  set_times(row, times, values);
}

}  // namespace tessera::bench
