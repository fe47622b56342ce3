// Fewer cores for a measurement than the machine has.
#pragma once

#include <sched.h>

#include <cstdint>

namespace tessera::bench {

// While it lives, the calling thread, and what it starts, threads and programs, run on the first `cores` that it may use.
class CoreScope {
 public:
  // Throws ConfigError where the thread may not use as many.
  explicit CoreScope(std::int64_t cores);
  ~CoreScope();
  CoreScope(const CoreScope&) = delete;
  CoreScope& operator=(const CoreScope&) = delete;

 private:
  cpu_set_t before_{};
};

}  // namespace tessera::bench
