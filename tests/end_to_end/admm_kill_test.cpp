// A run of four stages, killed in each stage and at 30 random moments.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/held_experiment.h"
#include "tests/end_to_end/kill_trial.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

constexpr const char* kStages = R"(
threads: {compute: 2, loader: 1}
checkpoint: {every: 5s, keep: 2}
stages:
  - {name: dense, train: 1e}
  - name: held
    train: 2e
    admm: {layers: "conv*", format: tucker2, ranks: {macs: 0.6}, keep: faster, rho: 1, update: 13s}
  - {name: factored, factorise: {from: held}}
  - {name: tuned, train: 8s, distill: {from: held}}
)";

class AdmmKill : public ::testing::Test {
 protected:
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/held/1"); }
  std::vector<std::string> train(const std::string& runs, bool replay) const {
    std::vector<std::string> words{"train", folder_ / "held.yaml", "--runs", folder_ / runs};
    if (replay) words.insert(words.end(), {"--decisions", folder_ / "chosen.json"});
    return words;
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  // Repeats until every timing has a recorded answer: only a run that replays conv1's verdict times the network without conv1.
  void choose() {
    write_bytes(folder_ / "held.yaml", held_experiment(kStages));
    for (int i = 0; i < 3; ++i) {
      const std::string runs = str("choosing-", i);
      expect_done(run_program(train(runs, i > 0)));
      write_bytes(folder_ / "chosen.json", without_conv1(run_in(runs)));
    }
  }

  TemporaryFolder folder_;
};

TEST_F(AdmmKill, InEachStageAndAtThirtyMoments) {
  choose();
  KillTrial trial{.train = [&](const std::string& runs) { return train(runs, true); },
                  .run_in = [&](const std::string& runs) { return run_in(runs); },
                  .forget = [&](const std::string& runs) { std::filesystem::remove_all(folder_ / runs); }};
  run_straight(trial);
  const std::string layers = read_bytes(run_in("straight") + "/layers.csv");
  expect_in(layers, "held,conv1,");
  expect_in(layers, ",dense,\"not faster at");
  expect_in(layers, ",constrained,");

  expect_survives(trial, {"step:12", "admm:1", "step:40", "factorise:2", "step:86"});
  expect_survives(trial, 30, 30);
}

}  // namespace
}  // namespace tessera::testing
