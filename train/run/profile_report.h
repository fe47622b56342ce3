// What `--profile` tells: where the time of training steps went, by op and by layer, beside what the machine can do.
// docs/profile.md defines every number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/support/profile.h"

namespace tessera {

struct MachinePeaks {
  int threads = 1;
  double gflops = 0;  // f32 multiply-adds in registers
  double gbytes = 0;  // GB/s of scaling an array larger than the caches

  void fields(Fields& f);
};

struct ProfileReport {
  std::string stage;
  std::int64_t last_step = 0;  // global
  std::int64_t batch = 0;
  std::int64_t units_per_sample = 1;  // of throughput, as the run's task says
  std::string throughput_unit = "samples/s";
  std::string processor;
  MachinePeaks peaks;
  std::vector<std::int64_t> step_ns;  // one per step; not empty
  std::vector<std::int64_t> between_ns;  // from one step's end to the next one's begin: logging, validation, saving
  std::vector<ProfileRow> rows;  // of all steps; they sum to the steps

  std::int64_t steps() const noexcept { return static_cast<std::int64_t>(step_ns.size()); }
  std::int64_t wall_ns() const noexcept;
  // Outside of kernels, but for waiting for data or other ranks and for the profiler's book-keeping.
  std::int64_t engine_ns() const noexcept;
  void fields(Fields& f);
};

std::string to_text(const ProfileReport& report);  // for a terminal: the ten greatest ops and layers
std::string to_markdown(const ProfileReport& report);  // profile.md: the same tables
Value to_value(const ProfileReport& report);  // profile.json: every row

}  // namespace tessera
