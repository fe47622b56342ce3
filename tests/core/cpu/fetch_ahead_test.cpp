#include "core/cpu/fetch_ahead.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::cpu {
namespace {

TEST(FetchAhead, GoesThroughEveryLineOfEveryRowOnce) {
  const char memory[2048] = {};
  FetchAhead ahead;
  ahead.add(memory, 300, 130, 2);  // three cache lines a row, the last one partly used
  ahead.add(memory, 64, 64, 0);
  ahead.add(memory + 1024, 512, 64, 2);
  std::vector<std::ptrdiff_t> lines;
  while (const char* const line = ahead.next()) lines.push_back(line - memory);
  EXPECT_EQ(lines, (std::vector<std::ptrdiff_t>{0, 64, 128, 300, 364, 428, 1024, 1536}));
}

TEST(FetchAhead, HoldsNoMoreThanItHasRoomFor) {
  const char memory[1024] = {};
  FetchAhead ahead;
  for (int i = 0; i <= FetchAhead::kMost; ++i) ahead.add(memory + 64 * i, 64, 64, 1);
  int lines = 0;
  while (ahead.next() != nullptr) ++lines;
  EXPECT_EQ(lines, FetchAhead::kMost);
}

TEST(FetchAhead, FetchesAsManyLinesAsItIsAskedFor) {
  const char memory[1024] = {};
  FetchAhead ahead;
  ahead.add(memory, 512, 256, 2);
  ahead.fetch(3);
  EXPECT_EQ(ahead.next(), memory + 192);
  ahead.fetch(100);
  EXPECT_EQ(ahead.next(), nullptr);
  ahead.fetch(1);
}

}  // namespace
}  // namespace tessera::cpu
