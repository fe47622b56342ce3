// The command line of `tessera train`.
#include <gtest/gtest.h>

#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

constexpr const char* kExperiment = R"(
version: 1
name: tiny
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 60, test_count: 20, batch: 20}
model: {name: mlp, hidden: [8]}
stages:
  - {name: dense, train: 1s}
)";

class Train : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(config_, kExperiment); }

  TemporaryFolder folder_;
  std::string config_ = folder_ / "tiny.yaml";
};

TEST_F(Train, SeedsMayStandBeforeTheFileAndBeforeOverrides) {
  const Outcome first = run_program({"train", "--seeds", "1,2", config_, "--runs", folder_ / "a"});
  EXPECT_EQ(first.exit_code, 0) << first.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "a/tiny/2"));
  const Outcome second = run_program({"train", config_, "--seeds", "1,2", "optimizer.lr=0.1", "--runs", folder_ / "b"});
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "b/tiny/2"));
}

TEST_F(Train, OneTimeLimitHoldsForAllSeeds) {
  const Outcome outcome = run_program({"train", config_, "--seeds", "1,2,3", "stages[0].train=9000000s", "--time-limit", "1s",
                                       "--runs", folder_ / "runs"});
  expect_outcome(outcome, 3, "--seeds 2,3 --runs");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/tiny/2"));
}

TEST_F(Train, RefusesWhatIsNoSeed) {
  expect_outcome(run_program({"train", config_, "--seeds", "1,x"}), 2, "--seeds: 'x' is not a seed");
}

// Nobody must mistake a truncated or empty table for a complete one.
TEST_F(Train, OutputThatCannotBeWrittenIsAFailure) {
  const std::string run = folder_ / "runs/tiny/1";
  const std::vector<std::vector<std::string>> commands{{"train", config_, "--runs", folder_ / "runs"},
                                                       {"status", run},
                                                       {"table", run},
                                                       {"bench", run, "--rounds", "6"},
                                                       {"schema"},
                                                       {"--version"},
                                                       {"--help"},
                                                       {"eval", "--help"}};
  for (const std::vector<std::string>& arguments : commands) {
    SCOPED_TRACE(arguments.front());
    const Outcome outcome = run_program(arguments, {}, "/dev/full");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.output;
    EXPECT_TRUE(outcome.output.ends_with("tessera: standard output cannot be written\n")) << outcome.output;
    EXPECT_EQ(run_program(arguments, {}, "/dev/null").exit_code, 0);
  }
}

}  // namespace
}  // namespace tessera::testing
