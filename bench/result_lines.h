// Results as JSON lines: each says what was measured, on what, and with which spread.
#pragma once

#include <string>
#include <vector>

#include "bench/arguments.h"
#include "core/config/value.h"
#include "core/device.h"
#include "core/summary.h"

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

}  // namespace tessera::bench
