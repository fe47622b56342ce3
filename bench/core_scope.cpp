#include "bench/core_scope.h"

#include <cerrno>
#include <cstring>

#include "core/support/error.h"

namespace tessera::bench {

CoreScope::CoreScope(std::int64_t cores) {
  TESSERA_CHECK(sched_getaffinity(0, sizeof before_, &before_) == 0, IoError, "sched_getaffinity: ", std::strerror(errno));
  TESSERA_CHECK(cores >= 1 && cores <= CPU_COUNT(&before_), ConfigError, "needs ", cores, " cores; this program may use ",
                CPU_COUNT(&before_));
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (std::size_t core = 0; CPU_COUNT(&chosen) < cores; ++core) {
    if (CPU_ISSET(core, &before_)) CPU_SET(core, &chosen);
  }
  TESSERA_CHECK(sched_setaffinity(0, sizeof chosen, &chosen) == 0, IoError, "sched_setaffinity: ", std::strerror(errno));
}

CoreScope::~CoreScope() { sched_setaffinity(0, sizeof before_, &before_); }

}  // namespace tessera::bench
