// The processes that `tessera plan --ranks` starts next to the one that it times.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "core/config/read.h"
#include "core/io/child_process.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "train/config/yaml_writer.h"
#include "train/experiment.h"
#include "train/plan/scaling_plan.h"
#include "train/run/environment.h"

namespace tessera::testing {
namespace {

constexpr const char* kExperiment = R"(version: 1
name: small
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 400, test_count: 20, batch: 100}
model: {name: layers, layers: [{conv2d: {out: 16, kernel: 3}}, relu, {conv2d: {out: 16, kernel: 3}}, global_avg_pool,
  {linear: {out: 10}}]}
stages: [{name: dense, train: 2s}]
)";

// Records what each neighbour receives.
class GivenTo final : public Neighbours {
 public:
  void start(std::int64_t, const ExperimentConfig& given, std::int64_t, const std::string& from) override {
    config = to_yaml(write(given));
    begin = from;
  }
  void stop() override {}

  std::string config, begin;
};

// Waits up to ten seconds until some process (or none, if not `there`) has these words in its command line.
bool processes_come_to(bool there, const std::string& words) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    bool seen = false;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::error_code gone;
      if (!std::filesystem::exists(entry.path() / "cmdline", gone)) continue;
      try {
        seen = seen || read_bytes(entry.path() / "cmdline").find(words) != std::string::npos;
      } catch (const std::runtime_error&) {  // the process has ended meanwhile
      }
    }
    if (seen == there) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

class NeighboursOfAPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (resolve_compute_threads(0) < 2) GTEST_SKIP() << "needs two processors";
    write_bytes(file_, kExperiment);
    std::filesystem::create_directory(folder_ / "temporary");
  }

  std::vector<std::string> plan() const { return {"plan", file_, "--ranks", "2", "--bandwidth", "25G", "--latency", "10us"}; }
  std::vector<std::string> environment() const { return {str("TMPDIR=", folder_ / "temporary")}; }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "small.yaml";
};

TEST_F(NeighboursOfAPlan, TakeStepsUntilTheirInputEnds) {
  GivenTo given;
  plan_scaling(load_experiment(file_), {2}, {.latency = 1e-5, .bandwidth = 1e9}, &given);
  write_bytes(folder_ / "given.yaml", given.config);
  write_bytes(folder_ / "begin", given.begin);
  const auto words = [&](const std::string& begin) {
    return std::vector<std::string>{TESSERA_PROGRAM, "plan", folder_ / "given.yaml", "--ranks", "2", "--neighbour", begin};
  };
  ChildProcess neighbour(words(folder_ / "begin"), {});
  EXPECT_EQ(neighbour.read_line(), "ready");
  EXPECT_TRUE(processes_come_to(true, folder_ / "begin"));
  neighbour.finish();
  ChildProcess without(words(folder_ / "none"), {});
  EXPECT_THROW(without.read_line(), IoError);
}

TEST_F(NeighboursOfAPlan, EndWithIt) {
  expect_outcome(run_program(plan(), environment()), 0, "at once here");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "temporary"));
  EXPECT_TRUE(processes_come_to(false, folder_ / "temporary"));
}

TEST_F(NeighboursOfAPlan, EndWhereItIsKilled) {
  RunningProgram running(plan(), environment());
  ASSERT_TRUE(processes_come_to(true, folder_ / "temporary"));
  running.send(SIGKILL);
  EXPECT_EQ(running.finish().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(processes_come_to(false, folder_ / "temporary"));
}

TEST_F(NeighboursOfAPlan, AreNotInTheHelp) {
  EXPECT_EQ(run_program({"plan", "--help"}).output.find("neighbour"), std::string::npos);
}

TEST_F(NeighboursOfAPlan, AreAsManyAsAMachineHas) {
  const std::vector<std::string> words = joined(plan(), {"--ranks-per-machine", "2", "threads.compute=1000"});
  expect_outcome(run_program(words), 2, "2 ranks with their compute threads need 2000 processors");
  expect_outcome(run_program({"plan", file_, "--ranks-per-machine", "2"}), 2, "say how many there are");
}

}  // namespace
}  // namespace tessera::testing
