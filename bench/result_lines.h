// Results as JSON lines: each says what was measured, on what, and with which spread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "compress/timing/summary.h"
#include "core/config/value.h"
#include "core/device/device.h"

namespace tessera::bench {

Value to_value(const std::vector<double>& numbers);
std::vector<double> numbers(const Value& list);

// Commit, compiler, libraries, device, processor, instruction set, threads and the time of this call, which all lines of one run
// share. The host's name stays out.
Value describe_surroundings(std::int64_t threads, Device device = {});

// Appends one line, `surroundings`, the run's command and the keys of `row`, to options.results, or prints it in a dry run.
// Throws IoError when it cannot be appended.
void publish(const CommonOptions& options, const Value& surroundings, const Value& row);

void print_summary(const std::string& name, const Summary& summary, const char* unit);

// The number that is compared with a target: the lower of the median of the rounds' ratios and the ratio of the medians (see
// ratio_value() in turns.h). If a ratio has only the median, as a share of a peak does, that counts.
double counted(const Value& ratio);

// "2.50x (2.40-2.61), of medians 2.31x".
std::string ratio_text(const Value& ratio);

// The ratios of an op's rows, a rival's time over ours or a share of a bandwidth, for what is asked of all of them.
struct Ratios {
  std::string op;
  std::vector<double> values = {};
  std::int64_t failed = 0;  // rows that could not be measured

  void add(const Value& row);  // what is counted of its "ratio"
  double least() const;  // 0 of none
  double geometric_mean() const;
};

struct Target {
  const char* of;  // "geometric_mean" or "least"
  double value;
};

// The line: op, rows, failed, geometric_mean, least; of a verdict also target_of, target, reached. A row that failed reaches
// nothing.
Value summary_row(const Ratios& ratios);
Value verdict_row(const Ratios& ratios, const Target& target);

// "conv2d: 29 rows, geometric_mean 1.021, least 0.953; least 0.97: missed", with a verdict on each of the targets, or "no
// target".
std::string verdict_of(const Ratios& ratios, std::span<const Target> targets);

// What scripts/gpu_check shows of a benchmark: the last such line.
void print_verdict(const std::string& verdict);

}  // namespace tessera::bench
