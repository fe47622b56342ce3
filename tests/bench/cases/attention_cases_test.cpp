// The cases of attention_bench at sizes too small for a clock.
#include "bench/cases/attention_cases.h"

#include "core/cpu/parallel.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "tests/bench/fake_torch.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

using TorchAttention = FakeTorch;

constexpr AttentionCase kDense{.positions = 9, .heads = 2, .width = 4};

AttentionCase sparse(std::int64_t positions, std::int64_t block) {
  return {.positions = positions, .block = block, .least = 2, .heads = 2, .width = 4};
}

TEST(AttentionCases, AreNamed) {
  EXPECT_EQ(row_of({4096}), "dense attention of 1x4096, 8 heads of 64");
  EXPECT_EQ(row_of({4096, 1}), "elements attention of 1x4096, 8 heads of 64");
  EXPECT_EQ(format_of({4096, 16}), "blocks of 16");
}

TEST(AttentionCases, CountSevenProductsOfThePairsThatAreSeen) {
  EXPECT_EQ(AttentionWorkload(kDense).flops(), 7.0 * 2 * (9 * 10 / 2) * 2 * 4);
  // The band covers all pairs, so that the sparse case has the FLOPs of the dense one.
  EXPECT_EQ(AttentionWorkload(sparse(9, 1)).flops(), AttentionWorkload(kDense).flops());
}

// Uses one thread: otherwise the scheduler decides how many threads hold a scratch buffer at the same time.
TEST(AttentionCases, TheirMemoryIsLinearInTheSequence) {
  const cpu::OneThread one_thread;
  AttentionCase of{.positions = 512, .heads = 1, .width = 16};
  const auto one = static_cast<double>(AttentionWorkload(of).bytes());
  of.positions = 2048;
  EXPECT_LT(static_cast<double>(AttentionWorkload(of).bytes()), 4.1 * one);
}

TEST(AttentionCases, ADenseRowHasTheShareOfThePeakInEachRound) {
  const Value row = measure_attention(kDense, {.rounds = 3, .seconds = 1e-6}, 1e-3);
  EXPECT_EQ(row.at("format").as_string(), "dense");
  EXPECT_EQ(row.at("shape").as_string(), "1x9, 2 heads of 4");
  EXPECT_EQ(row.at("phase").as_string(), "training");
  EXPECT_EQ(row.at("ratio").at("median").as_double(), row.at("peak_share").as_double());
  EXPECT_NEAR(row.at("gflops").as_double(), 1e-6 * 5040 / row.at("tessera_ms").at("median").as_double(), 1e-9);
  EXPECT_GT(row.at("memory_bytes").as_int(), 0);
  EXPECT_EQ(row.find("band"), nullptr);
}

TEST(AttentionCases, ASparseRowStandsBesideTheDenseOne) {
  const Value row = measure_sparse_attention(sparse(300, 16), {.rounds = 3, .seconds = 1e-6}, 1e-3);
  EXPECT_EQ(row.at("format").as_string(), "blocks of 16");
  EXPECT_EQ(row.at("rival").at("name").as_string(), "tessera, dense");
  EXPECT_GT(row.at("pair_ratio").as_double(), 1);
  EXPECT_EQ(row.at("band").as_int(), kBand);
  EXPECT_EQ(row.at("target").as_double(), 2);
  EXPECT_GT(row.at("pattern_bytes").as_int(), 0);
  EXPECT_GT(row.at("dense_memory_bytes").as_int(), 0);
}

// Only one value of the gradient of q is compared: the first.
TEST_F(TorchAttention, ItsFastestWayIsTheRival) {
  const Contestant ours = AttentionWorkload(kDense).step();
  ours.run();
  const TorchProgram torch =
      program(R"({"modes": ["heads-first", "as-is"]})", str(R"(values)
  echo '{"values": [)",
                                                            ours.result().to_vector<float>().front(), R"(]}' ;;
matmul) echo '{"gflops": 1e6}' ;;
time)
  case $word in as-is) ms=20 ;; *) ms=30 ;; esac
  list=$ms
  while [ $count -gt 1 ]; do list="$list, $ms"; count=$((count - 1)); done
  echo "{\"ms\": [$list]}" ;;)"));
  const Value row = measure_torch_attention(kDense, {{.python = torch.python, .script = torch.script, .sweep_runs = 1}, 2, 3});
  EXPECT_EQ(row.at("library").as_string(), "PyTorch");
  EXPECT_EQ(row.at("torch_settings").at("mode").as_string(), "as-is");
  EXPECT_EQ(row.at("torch_ms").at("median").as_double(), 20);
}

TEST_F(TorchAttention, GetsOurOperands) {
  const TemporaryFolder folder;
  AttentionWorkload(kDense).write_inputs(folder.path());
  const SafetensorsFile file =
      decode_safetensors(real_vfs().read_file(folder.path() / "attention.safetensors"), "attention.safetensors");
  for (const char* name : {"q", "k", "v", "grad_y"}) EXPECT_EQ(file.tensors.at(name).shape(), Shape({1, 9, 2, 4})) << name;
}

TEST_F(TorchAttention, AnInterpreterWithoutItIsNamed) {
  const TorchProgram torch = program(R"({"missing": "No module named torch"})", "none) ;;");
  EXPECT_EQ(message_of<TorchMissing>([&] {
              check_torch_attention({torch.python, torch.script});
            }),
            "torch: /bin/sh cannot import it: No module named torch");
}

}  // namespace
}  // namespace tessera::bench
