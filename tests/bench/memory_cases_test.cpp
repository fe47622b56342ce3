#include "bench/memory_cases.h"

#include <gtest/gtest.h>

#include <set>

namespace tessera::bench {
namespace {

TEST(MemoryCases, EveryOpIsMeasuredInBothDirections) {
  std::set<std::string> seen;
  for (const MemoryMaker& maker : memory_cases(1)) {
    const MemoryCase memory = maker.make();
    EXPECT_EQ(memory.op, maker.op);
    EXPECT_EQ(memory.shape, maker.shape);
    const Value row = measure_memory(memory, 1, {.rounds = 1, .seconds = 0});
    EXPECT_GT(row.at("ratio").at("median").as_double(), 0);
    const bool read_only = memory.op == "cross_entropy" && memory.pass == "forward";  // unrecorded: the result is one number
    EXPECT_GE(memory.bytes, read_only ? 1e6 : 2e6) << memory.op;  // at least read, and written, once
    if (read_only) {
      EXPECT_LT(memory.bytes, 1.1e6);
    }
    EXPECT_TRUE(seen.insert(memory.op + ' ' + memory.pass).second) << memory.op << ' ' << memory.pass << " is there twice";
  }
  for (const char* op :
       {"relu", "gelu", "softmax", "layer_norm", "batch_norm c16", "batch_norm c64", "batch_norm c256", "cross_entropy"}) {
    EXPECT_EQ(seen.count(std::string(op) + " forward"), 1u) << op;
    EXPECT_EQ(seen.count(std::string(op) + " backward"), 1u) << op;
  }
  EXPECT_EQ(seen.count("sgd step"), 1u);
  EXPECT_EQ(seen.count("adamw step"), 1u);
}

}  // namespace
}  // namespace tessera::bench
