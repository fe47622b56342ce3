// What a run's bytes depend on beside its config: build, libraries, instruction set, threads, machine.
#pragma once

#include <string>
#include <vector>

#include "core/config/value.h"

namespace tessera {

struct ExperimentConfig;

// "0.1.0 (3c36e2f)": the version and the commit it was built from.
std::string version_text();

// Threads for kernels: `asked`, or every processor this process may use when 0.
std::int64_t resolve_compute_threads(std::int64_t asked);
void set_compute_threads(std::int64_t asked);

// The content of env.json, of a run that so many processes compute together.
Value describe_environment(const ExperimentConfig& config, int ranks = 1);

// The name of the GPU or processor that computes, from such a content.
std::string computing_device(const Value& environment);

// What the time of a kernel depends on beside its shape: processor or GPU, libraries, build.
std::string timing_environment(const std::string& device, std::int64_t threads);

// On one line, for those who print clock figures of the CPU: processor, build, oneDNN, kernels, wait policy.
std::string setup_text();

// One sentence per difference that can change a run's bytes: build, libraries, device, ISA, threads.
std::vector<std::string> environment_changes(const Value& before, const Value& now);

}  // namespace tessera
