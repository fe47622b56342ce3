#include "core/cpu/parallel.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <vector>

namespace tessera {
namespace {

class Parallel : public ::testing::Test {
 protected:
  Parallel() : before_(omp_get_max_threads()) {}
  ~Parallel() override { omp_set_num_threads(before_); }

  // The kernel's numbers of the threads that run `parts` parts.
  static std::set<long> threads_of(int parts) {
    std::set<long> threads;
    std::mutex mutex;
    cpu::parallel_parts(parts, parts, [&](std::int64_t, std::int64_t, int) {
      const std::lock_guard lock(mutex);
      threads.insert(::syscall(SYS_gettid));
    });
    return threads;
  }

 private:
  int before_;
};

TEST_F(Parallel, PartsAreContiguousAndOfOneThreadEach) {
  omp_set_num_threads(4);
  for (const int parts : {1, 2, 3, 4, 7}) {
    std::vector<int> part_of(23, -1);
    cpu::parallel_parts(23, parts, [&](std::int64_t begin, std::int64_t end, int part) {
      ASSERT_EQ(begin, 23 * part / parts);
      for (std::int64_t at = begin; at < end; ++at) part_of[static_cast<std::size_t>(at)] = part;
    });
    for (int at = 0; at < 23; ++at) {
      const int part = part_of[static_cast<std::size_t>(at)];
      EXPECT_TRUE(23 * part / parts <= at && at < 23 * (part + 1) / parts) << at << " in part " << part << " of " << parts;
    }
    EXPECT_EQ(threads_of(parts).size(), static_cast<std::size_t>(parts));
  }
}

TEST_F(Parallel, FewerPartsKeepTheThreadsOfMore) {
  omp_set_num_threads(4);
  const std::set<long> all = threads_of(4);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(threads_of(2).size(), 2U);
  EXPECT_EQ(threads_of(4), all);
}

TEST_F(Parallel, AnErrorOfOnePartIsTheCallers) {
  omp_set_num_threads(4);
  for (const int failing : {0, 2}) {
    EXPECT_THROW(cpu::parallel_parts(3, 3,
                                     [&](std::int64_t, std::int64_t, int part) {
                                       if (part == failing) throw std::runtime_error("part");
                                     }),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace tessera
