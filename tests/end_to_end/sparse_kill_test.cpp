// A run that prunes, gives layers sparse kernels by the clock and trains on, killed at 30 moments.
#include <gtest/gtest.h>

#include <csignal>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/kill_trial.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

// 26 steps an epoch.
constexpr const char* kExperiment = R"(
version: 1
name: sparse
seed: 5
threads: {compute: 2, loader: 1}
data: {name: glyphs, count: 960, test_count: 60, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
checkpoint: {every: 5s, keep: 2}
log_every: 3
model:
  name: layers
  layers:
    - {conv2d: {out: 16, kernel: 3, stride: 4, padding: 1, bias: false, name: conv1}}
    - batch_norm
    - relu
    - {conv2d: {out: 32, kernel: 3, padding: 1, bias: false, name: conv2}}
    - batch_norm
    - relu
    - flatten
    - {linear: {out: 40, name: fc1}}
    - relu
    - {linear: {out: 10, name: fc}}
stages:
  - {name: pruned, train: 2e, prune: {sparsity: {target: 0.9, begin: 4s, end: 44s, every: 5s}}}
  - {name: sparse, train: 2e, sparsify: {keep: faster}}
)";

class SparseKill : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "sparse.yaml", kExperiment); }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/sparse/1"); }
  std::vector<std::string> train(const std::string& runs, bool replay) const {
    std::vector<std::string> words{"train", folder_ / "sparse.yaml", "--runs", folder_ / runs};
    if (replay) words.insert(words.end(), {"--decisions", folder_ / "chosen.json"});
    return words;
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  // A clock's answers, but that it found conv2 not faster and all else faster.
  void choose() {
    for (int i = 0; i < 3; ++i) {
      const std::string runs = str("choosing-", i);
      expect_done(run_program(train(runs, i > 0)));
      Value file = parse_json(read_bytes(run_in(runs) + "/decisions.json"), "decisions.json");
      for (Value::Entry& entry : file.find("decisions")->as_map()) {
        if (!entry.key.starts_with("keep.")) continue;
        const bool conv = entry.key.starts_with("keep.layer ") && entry.key.find("conv2d") != std::string::npos;
        entry.value = str(conv ? "not-faster" : "faster", " dense_ms 2 compressed_ms 1 ratio 2 low 1.5 high 2.5");
      }
      write_bytes(folder_ / "chosen.json", to_json(file));
    }
  }

  TemporaryFolder folder_;
};

TEST_F(SparseKill, InTheRampAtThePassInTheFineTuningAndAtThirtyMoments) {
  choose();
  KillTrial trial{.train = [&](const std::string& runs) { return train(runs, true); },
                  .run_in = [&](const std::string& runs) { return run_in(runs); },
                  .forget = [&](const std::string& runs) { std::filesystem::remove_all(folder_ / runs); }};
  run_straight(trial);
  const std::string layers = read_bytes(run_in("straight") + "/layers.csv");
  expect_in(layers, "sparse,conv2,conv2d,conv2d,");
  expect_in(layers, "sparse,fc1,linear,sparse_linear,");

  expect_survives(trial, {"step:12", "step:33", "save:45", "sparsify:1", "step:70"});
  expect_survives(trial, 30, 31);
}

// A clock's answer that was taken and not recorded is asked for again.
TEST_F(SparseKill, InTheTimingOfALayer) {
  choose();
  const Outcome killed = run_program(train("timing", false), {"TESSERA_KILL_AT=timing:2"});
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  expect_done(run_program({"resume", run_in("timing")}));
  std::vector<std::string> replay = train("replayed", false);
  replay.insert(replay.end(), {"--decisions", run_in("timing") + "/decisions.json"});
  expect_done(run_program(replay));
  EXPECT_TRUE(result_of(run_in("timing")) == result_of(run_in("replayed")));
}

}  // namespace
}  // namespace tessera::testing
