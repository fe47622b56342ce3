// `precision: bf16` from end to end: trained, killed, resumed, forked, evaluated, exported and profiled. It is refused if the
// processor lacks the instructions.
#include <gtest/gtest.h>

#include "core/cpu/onednn_version.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

using Texts = std::vector<std::string>;

const Texts kNoBf16{"ONEDNN_MAX_CPU_ISA=AVX2"};
constexpr const char* kRefusal =
    "bf16 needs a processor with avx512_bf16 or AMX; oneDNN may use avx2 here (ONEDNN_MAX_CPU_ISA can limit it); use f32\n";

class Bf16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::onednn_has_bf16()) GTEST_SKIP() << "the processor has neither avx512_bf16 nor AMX";
    write_bytes(folder_ / "small.yaml", kSmallExperiment);
  }

  Texts command(const std::string& runs, const Texts& more = {}) const {
    return joined({"train", folder_ / "small.yaml", "--runs", folder_ / runs, "deterministic=true", "precision=bf16"}, more);
  }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }
  std::string train(const std::string& runs, const Texts& more = {}) const {
    expect_done(run_program(command(runs, more)));
    return run_in(runs);
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  TemporaryFolder folder_;
};

TEST_F(Bf16, ARunRepeatsItsBytesAndDiffersFromF32) {
  const std::string run = train("one");
  EXPECT_TRUE(result_of(train("two")) == result_of(run));
  EXPECT_FALSE(result_of(train("single", {"precision=f32"})) == result_of(run));
}

TEST_F(Bf16, WeightsStatisticsAndOptimiserStayInF32) {
  const std::string checkpoint = newest_checkpoint(train("run"));
  for (const char* part : {"/model.safetensors", "/optimizer.safetensors"}) {
    const SafetensorsFile file = decode_safetensors(read_bytes(checkpoint + part), part);
    EXPECT_FALSE(file.tensors.empty()) << part;
    for (const auto& [name, tensor] : file.tensors) EXPECT_EQ(tensor.dtype(), DType::f32) << part << ' ' << name;
  }
}

TEST_F(Bf16, KilledAndResumedEndsWithTheSameBytes) {
  const std::string straight = result_of(train("straight"));
  ASSERT_NO_FATAL_FAILURE(train_killed_and_resumed(command("killed"), run_in("killed")));
  EXPECT_TRUE(result_of(run_in("killed")) == straight);
}

TEST_F(Bf16, ChoicesOfAClockAreKeptApartAndReplayed) {
  const Texts large{"deterministic=false", "model.layers[3].conv2d.out=32"};  // conv2 is large enough for a clock
  const std::string run = train("timed", large);
  const std::string decisions = read_bytes(run + "/decisions.json");
  expect_in(decisions, "threads2 bf16\"");
  const std::string again = train("again", joined(large, {"--decisions", run + "/decisions.json"}));
  EXPECT_TRUE(result_of(again) == result_of(run));
}

TEST_F(Bf16, ForksGoFromOnePrecisionToTheOther) {
  const std::string single = train("single", {"precision=f32"});
  expect_done(run_program({"fork", single, "--at", "dense", "precision=bf16", "--runs", folder_ / "to"}));
  expect_in(read_bytes(run_in("to") + "/config.resolved.yaml"), "precision: bf16");
  expect_done(run_program({"fork", run_in("to"), "--at", "39", "precision=f32", "--runs", folder_ / "back"}));
}

TEST_F(Bf16, ARunIsEvaluatedTabulatedExportedAndProfiled) {
  const std::string run = train("run", {"--profile"});
  expect_in(read_bytes(run + "/profile.json"), "\"cast\"");
  expect_done(run_program({"eval", run}));
  expect_done(run_program({"eval", run, "precision=f32"}));
  expect_done(run_program({"table", run}));
  expect_done(run_program({"export", run, "--output", folder_ / "export"}));
  const SafetensorsFile file = decode_safetensors(read_bytes(folder_ / "export/model.safetensors"), "model");
  for (const auto& [name, tensor] : file.tensors) EXPECT_NE(tensor.dtype(), DType::bf16) << name;
}

TEST(Bf16Refused, WhereTheProcessorLacksIt) {
  const TemporaryFolder folder;
  write_bytes(folder / "small.yaml", kSmallExperiment);
  const Texts train{"train", folder / "small.yaml", "--runs", folder / "runs", "precision=bf16"};
  expect_outcome(run_program(train, kNoBf16), 2, str("precision: ", kRefusal));
  EXPECT_FALSE(std::filesystem::exists(folder / "runs"));
}

TEST_F(Bf16, ARunFromElsewhereIsNotResumedButEvaluatedInF32) {
  const std::string run = train("run");
  expect_outcome(run_program({"resume", run}, kNoBf16), 2, kRefusal);
  expect_done(run_program({"eval", run, "precision=f32"}, kNoBf16));
}

}  // namespace
}  // namespace tessera::testing
