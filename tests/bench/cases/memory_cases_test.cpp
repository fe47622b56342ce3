#include "bench/cases/memory_cases.h"

#include <gtest/gtest.h>

#include <map>

namespace tessera::bench {
namespace {

// Walks over operands of x's size. A forward pass reads x (a batch norm twice) and writes y, which has half the size for swiglu
// and is one number for a loss. A backward pass reads y's gradient and x or y (a batch norm reads both twice, a loss only its
// logits, a rotation only the gradient), and writes x's gradient. A step reads the gradient, and reads and writes the weight
// and its state: the momentum of sgd, the two moments of adamw.
const std::map<std::string, double> kWalks{
    {"relu forward", 2},
    {"relu backward", 3},
    {"gelu forward", 2},
    {"gelu backward", 3},
    {"softmax forward", 2},
    {"softmax backward", 3},
    {"layer_norm forward", 2},
    {"layer_norm backward", 3},
    {"rms_norm forward", 2},
    {"rms_norm backward", 3},
    {"swiglu forward", 1.5},
    {"swiglu backward", 2.5},
    {"rotary forward", 2},
    {"rotary backward", 2},
    {"batch_norm c16 forward", 3},
    {"batch_norm c16 backward", 5},
    {"batch_norm c64 forward", 3},
    {"batch_norm c64 backward", 5},
    {"batch_norm c256 forward", 3},
    {"batch_norm c256 backward", 5},
    {"cross_entropy c1000 forward", 1},
    {"cross_entropy c1000 backward", 2},
    {"cross_entropy c50257 forward", 1},
    {"cross_entropy c50257 backward", 2},
    {"sgd step", 5},
    {"adamw step", 7},
};

TEST(MemoryCases, EveryOpIsMeasuredInBothDirectionsAndSaysWhatItMustMove) {
  std::map<std::string, double> seen;
  for (const MemoryMaker& maker : memory_cases(1)) {
    const MemoryCase memory = maker.make();
    SCOPED_TRACE(memory.op + ' ' + memory.pass);
    EXPECT_EQ(memory.op, maker.op);
    EXPECT_EQ(memory.shape, maker.shape);
    const Value row = measure_memory(memory, 1, {.rounds = 1, .seconds = 0});
    EXPECT_GT(row.at("ratio").at("median").as_double(), 0);
    EXPECT_GT(row.at("share_of_same_traffic").at("median").as_double(), 0);
    for (const char* side : {"tessera_ms", "stream_ms", "traffic_ms"}) {
      EXPECT_EQ(row.at(side).at("rounds").as_list().size(), 1u) << side;
      EXPECT_GT(row.at(side).at("alone").as_double(), 0) << side;
    }
    EXPECT_EQ(row.at("bytes").as_double(), memory.bytes());
    // The operands have 1 MiB. Rows whose length is no power of 2 do not fill it completely.
    const double elements = memory.op == "cross_entropy c1000"    ? 262 * 1000
                            : memory.op == "cross_entropy c50257" ? 5 * 50257
                                                                  : 1 << 18;
    const auto walks = kWalks.find(memory.op + ' ' + memory.pass);
    ASSERT_NE(walks, kWalks.end());
    EXPECT_DOUBLE_EQ(memory.bytes(), walks->second * elements * sizeof(float));
    EXPECT_TRUE(seen.insert(*walks).second) << "is there twice";
  }
  EXPECT_EQ(seen, kWalks);
}

TEST(MemoryCases, ACopyIsHeldAgainstCopies) {
  const MemoryCase copy{.op = "copy",
                        .pass = "forward",
                        .shape = "[8]",
                        .traffic = {.reads = 1, .writes = 1},
                        .array_bytes = 32,
                        .ours = {"tessera", [] {}},
                        .copies = true};
  EXPECT_NE(measure_memory(copy, 1, {.rounds = 1, .seconds = 0}).at("stream").as_string(), "scale in place");
}

}  // namespace
}  // namespace tessera::bench
