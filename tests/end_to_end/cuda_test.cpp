// `device: cuda` from end to end, in every precision: trained, killed, resumed, recorded or not. In f32 runs also move to the
// other device.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/support/gpu.h"
#include "tests/support/relative_error.h"

namespace tessera::testing {
namespace {

using Texts = std::vector<std::string>;

class CudaRun : public GpuTestWithParam<std::string> {
 protected:
  void SetUp() override {
    GpuTestWithParam::SetUp();
    if (!IsSkipped()) write_bytes(folder_ / "small.yaml", kSmallExperiment);
  }

  Texts command(const std::string& runs, const Texts& more = {}) const {
    return joined({"train", folder_ / "small.yaml", "--runs", folder_ / runs, "deterministic=true", "device=cuda",
                   "precision=" + GetParam()},
                  more);
  }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }
  std::string train(const std::string& runs, const Texts& more = {}, const Texts& environment = {}) const {
    expect_done(run_program(command(runs, more), environment));
    return run_in(runs);
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  TemporaryFolder folder_;
};

TEST_P(CudaRun, RepeatsItsBytesRecordedOrNot) {
  const std::string straight = result_of(train("one"));
  EXPECT_TRUE(result_of(train("two")) == straight);
  EXPECT_TRUE(result_of(train("eager", {}, {"TESSERA_GRAPH=0"})) == straight);
  EXPECT_TRUE(result_of(train("alone", {"threads.loader=0"})) == straight);
}

TEST_P(CudaRun, KilledAndResumedEndsWithTheSameBytes) {
  const std::string straight = result_of(train("straight"));
  ASSERT_NO_FATAL_FAILURE(train_killed_and_resumed(command("killed"), run_in("killed")));
  EXPECT_TRUE(result_of(run_in("killed")) == straight);
}

TEST_P(CudaRun, IsEvaluatedTabulatedBenchedAndExported) {
  const std::string run = train("run");
  expect_in(read_bytes(run + "/env.json"), "\"device\": \"cuda:0\"");
  expect_done(run_program({"eval", run}));
  expect_done(run_program({"table", run}));
  expect_done(run_program({"bench", run, "--rounds", "6"}));
  expect_done(run_program({"export", run, "--output", folder_ / "export"}));
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaRun, ::testing::Values("f32", "tf32", "bf16", "f16"),
                         [](const auto& test) { return test.param; });

using CudaRunInF32 = CudaRun;

// Everything that a resume continues from: weights, statistics, momentum, averages.
std::map<std::string, Tensor> newest_state(const std::string& run) {
  std::map<std::string, Tensor> state;
  for (const auto& entry : std::filesystem::directory_iterator(newest_checkpoint(run))) {
    const std::string file = entry.path().filename().string();
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile part = decode_safetensors(read_bytes(entry.path()), file);
    for (const auto& [name, tensor] : part.tensors) state[file + ' ' + name] = tensor;
  }
  return state;
}

// Up to rounding, eight steps here and five on the other device equal thirteen there, and the run then finishes. A ReLU that
// changes sign moves a momentum by about 1e-3 of it. A lost state would move it by 0.3 or more.
TEST_P(CudaRunInF32, CheckpointsCrossDevices) {
  for (const auto& [from, to] : {std::pair{"cuda", "cpu"}, std::pair{"cpu", "cuda"}}) {
    SCOPED_TRACE(str(from, " to ", to));
    const auto begin = [&](const std::string& runs, const char* device, const char* end) {
      return run_program(command(runs, {str("device=", device), "checkpoint.async=false"}), {end}).exit_code;
    };
    ASSERT_EQ(begin(from, from, "TESSERA_KILL_AT=step:9"), 128 + 9);
    const std::string run = run_in(from);
    const Outcome resumed = run_program({"resume", run, str("device=", to)}, {"TESSERA_KILL_AT=step:13"});
    ASSERT_EQ(resumed.exit_code, 128 + 9) << resumed.output;
    expect_in(resumed.output, "the same bytes as an uninterrupted run are not promised");

    const std::string alone = str("alone_", to);
    ASSERT_EQ(begin(alone, to, "TESSERA_KILL_AT=step:13"), 128 + 9);
    const auto got = newest_state(run), want = newest_state(run_in(alone));
    EXPECT_GE(want.size(), 12u);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, tensor] : want) {
      ASSERT_TRUE(got.contains(name)) << name;
      EXPECT_LE(relative_error(got.at(name), tensor), 2e-2) << name;
    }
    expect_done(run_program({"resume", run}));
  }
}

// conv2 is large enough for a clock to choose its algorithms, and the factorised layers are timed against their dense originals.
const Texts kByClock{"deterministic=false", "model.layers[3].conv2d.out=32", "stages[1].factorise.keep=faster",
                     "stages[3].factorise.keep=faster"};

TEST_P(CudaRunInF32, ChoicesOfItsClockAreReplayed) {
  const std::string run = train("timed", kByClock);
  expect_in(read_bytes(run + "/decisions.json"), "cuda.conv2d.forward");
  expect_in(read_bytes(run + "/decisions.json"), "keep.");
  const std::string again = train("again", joined(kByClock, {"--decisions", run + "/decisions.json"}));
  EXPECT_TRUE(result_of(again) == result_of(run));
}

// The killed run measures for itself when resumed. A straight run then replays its choices.
TEST_P(CudaRunInF32, KilledInsideATimingKeepsWhatItChose) {
  for (const int timing : {1, 3}) {
    SCOPED_TRACE(timing);
    const std::string runs = str("killed", timing);
    ASSERT_EQ(run_program(command(runs, kByClock), {str("TESSERA_KILL_AT=timing:", timing)}).exit_code, 128 + 9);
    expect_done(run_program({"resume", run_in(runs)}));
    const std::string again = train("again" + runs, joined(kByClock, {"--decisions", run_in(runs) + "/decisions.json"}));
    EXPECT_TRUE(result_of(again) == result_of(run_in(runs)));
  }
}

// 13 steps an epoch. The second stage computes in sparse layers.
const Texts kPruned{
    "stages=[{name: pruned, train: 1e, prune: {layers: conv2, sparsity: {target: 0.8, begin: 2s, end: 10s, every: 4s}}}, "
    "{name: sparse, train: 1e, sparsify: {keep: always}}]"};

TEST_P(CudaRunInF32, PrunedKilledAndResumedEndsWithTheSameBytes) {
  const std::string straight = result_of(train("straight", kPruned));
  expect_in(straight, "sparse_conv2d");
  EXPECT_TRUE(result_of(train("eager", kPruned, {"TESSERA_GRAPH=0"})) == straight);
  const Texts places{"step:7", "sparsify:1", "step:16", "save:22", "step:25"};
  ASSERT_NO_FATAL_FAILURE(train_killed_and_resumed(command("killed", kPruned), run_in("killed"), places));
  EXPECT_TRUE(result_of(run_in("killed")) == straight);
}

TEST_P(CudaRunInF32, SaysWhatRunsAConvolutionAndWhy) {
  const Outcome outcome = run_program(command("told"), {"TESSERA_LOG=debug"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "tessera: cuda.conv2d.forward n32 h28 w28 c1>8 k3x3 s2x2 p1x1");
  expect_in(outcome.output, ": gemm; the model: the kernel is 1x1; that is a matrix product, which the library does");
  expect_in(outcome.output, "tessera: tucker2_conv2d f32 training ");
}

TEST_P(CudaRunInF32, NamesTheOpThatMadeTheFirstInf) {
  const Outcome outcome = run_program(command("burst", {"optimizer.lr=1e30", "schedule={name: constant}"}));
  EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
  expect_in(outcome.output, "forward made the first ");
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaRunInF32, ::testing::Values("f32"), [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera::testing
