// A run of two ranks, killed twenty times: one rank, both, rank 0 in a save, or one that is stopped and never continues.
#include <gtest/gtest.h>

#include <signal.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/ranks_program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

using Milliseconds = std::chrono::milliseconds;

enum class Death { of_one, of_both, in_a_save, of_one_that_stops };
constexpr std::array kDeaths{Death::of_one, Death::of_both, Death::in_a_save, Death::of_one_that_stops};
constexpr int kKills = 20;

class RanksKill : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string longer = changed(small_experiment_of_ranks(), "dense, train: 2e", "dense, train: 20e");
    // A save takes less than a millisecond if folders are in memory. Among many saves a kill hits one.
    write_bytes(folder_ / "small.yaml", changed(longer, "every: 4s", "every: 1s"));
  }
  std::vector<std::string> train(const std::string& runs, const std::vector<std::string>& more = {}) const {
    return joined({"train", folder_ / "small.yaml", "--runs", folder_ / runs}, more);
  }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }

  // Returns whether the run ended before it could be killed. It is killed after `wait` at the latest.
  bool ends(const std::vector<std::string>& words, const std::string& runs, Death death, Milliseconds wait) {
    RunningProgram program(started(2, words), kRanksEnvironment);
    if (!program.wait_for(words.front() == "resume" ? "resuming at stage" : "run folder: ")) {
      const Outcome outcome = program.finish();
      EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
      return true;
    }
    // A folder without this file is not a run yet, and cannot be resumed.
    while (!std::filesystem::exists(run_in(runs) + "/config.resolved.yaml") && !program.ends_within(Milliseconds(1))) {
    }
    const std::map<int, pid_t> processes = processes_of(program);
    bool goes_on = !program.ends_within(wait) && processes.size() == 2;
    while (goes_on && death == Death::in_a_save && !holds_unfinished_save(run_in(runs))) {
      goes_on = !program.ends_within(Milliseconds(0));
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (goes_on) {
      const int signal = death == Death::of_one_that_stops ? SIGSTOP : SIGKILL;
      const int one = death == Death::in_a_save ? 0 : static_cast<int>(random_() % 2);
      for (const auto& [rank, process] : processes) {
        if (rank == one || death == Death::of_both) kill(process, signal);
      }
    }
    if (goes_on && death == Death::of_one_that_stops && !program.ends_within(std::chrono::seconds(20))) {
      // Everything is saved by then: the run waits in MPI_Finalize, which no heartbeat watches.
      EXPECT_NE(read_bytes(run_in(runs) + "/status.json").find("\"finished\""), std::string::npos);
      for (const auto& [rank, process] : processes) kill(process, SIGCONT);
    }
    const Outcome outcome = program.finish();
    for (const auto& [rank, process] : processes) {
      EXPECT_TRUE(ends_soon(process)) << "rank " << rank << " is left behind: " << outcome.output;
    }
    if (outcome.exit_code == 0) return true;
    if (death == Death::of_one_that_stops) {
      expect_in(outcome.output, "has not answered for 7 seconds; all ranks end, and the last checkpoint stands");
    } else {
      EXPECT_EQ(outcome.exit_code, 128 + SIGKILL) << outcome.output;
    }
    if (death == Death::in_a_save && holds_unfinished_save(run_in(runs))) ++unfinished_saves_;
    return false;
  }

  std::mt19937 random_{41};
  int unfinished_saves_ = 0;
  TemporaryFolder folder_;
};

TEST_F(RanksKill, TwentyTimes) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome straight = run_ranks(2, train("straight"));
  ASSERT_EQ(straight.exit_code, 0) << straight.output;
  const auto whole = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - begin);
  const std::string result = result_of(run_in("straight"));
  int kills = 0;
  for (int run = 0; kills < kKills; ++run) {
    ASSERT_LT(run, 2 * kKills) << "kills come too late";
    const std::string runs = str("killed-", run);
    std::vector<std::string> words = train(runs, {"--decisions", run_in("straight") + "/decisions.json"});
    for (bool ended = false; !ended;) {
      const Milliseconds some(random_() % static_cast<unsigned>(whole.count() / 2 + 1));
      const Milliseconds wait = kills < kKills ? some : std::chrono::minutes(5);
      ended = ends(words, runs, kDeaths[static_cast<std::size_t>(kills) % kDeaths.size()], wait);
      if (HasFailure()) return;
      if (!ended) ++kills;
      words = {"resume", run_in(runs)};
    }
    EXPECT_TRUE(result_of(run_in(runs)) == result) << runs << ", after " << kills << " kills in all";
  }
  RecordProperty("unfinished_saves", unfinished_saves_);
}

}  // namespace
}  // namespace tessera::testing
