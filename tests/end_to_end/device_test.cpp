// The device of a run: what the run says of its choice, what it stores, and how it continues elsewhere. The program sees no GPU
// here, whatever the machine has.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

constexpr const char* kExperiment = R"(version: 1
name: small
data: {name: glyphs, count: 60, test_count: 20, batch: 10, val: 0}
model: {name: layers, layers: [{conv2d: {out: 4, kernel: 3, stride: 2, name: conv1}}, relu, global_avg_pool, {linear: {out: 10}}]}
optimizer: {name: sgd, lr: 0.05}
stages: [{name: dense, train: 8s}]
checkpoint: {every: 4s, keep: 9}
deterministic: true
)";

void replace(const std::string& file, const std::string& from, const std::string& to) {
  std::string text = read_bytes(file);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << text;
  write_bytes(file, text.replace(at, from.size(), to));
}

class DeviceOfARun : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(file_, kExperiment); }

  static Outcome run(const std::vector<std::string>& arguments, std::vector<std::string> environment = {}) {
    environment.emplace_back("CUDA_VISIBLE_DEVICES=");
    return run_program(arguments, environment);
  }
  Outcome train(const std::vector<std::string>& more = {}, const std::vector<std::string>& environment = {}) const {
    return run(joined({"train", file_, "--runs", folder_ / "runs"}, more), environment);
  }
  // The message is one sentence with the device, the reason and the remedy.
  static void expect_refused(const Outcome& outcome) {
    expect_outcome(outcome, 2, "device is cuda:0, but ");
    expect_in(outcome.output, "; use cpu or auto");
    const bool reason = outcome.output.find("this build has no CUDA backend") != std::string::npos ||
                        outcome.output.find("no CUDA driver is installed") != std::string::npos ||
                        outcome.output.find("no GPU is visible to this process") != std::string::npos;
    EXPECT_TRUE(reason) << outcome.output;
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "small.yaml";
  std::string run_ = folder_ / "runs/small/1";
};

TEST_F(DeviceOfARun, AGpuThatIsNotThereIsRefusedBeforeAFolderIsMade) {
  for (const char* device : {"device=cuda", "device=cuda:0"}) expect_refused(train({device}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  expect_refused(run({"plan", file_, "device=cuda"}));
  expect_refused(run({"validate", file_, "device=cuda"}));
}

TEST_F(DeviceOfARun, AutoSaysWhatItTookAndWhyAndStoresIt) {
  const Outcome outcome = train();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "device: auto is the CPU: ");
  expect_in(read_bytes(run_ + "/train.log"), "device: auto is the CPU: ");
  expect_in(read_bytes(run_ + "/config.resolved.yaml"), "device: cpu\n");
  const Value env = parse_json(read_bytes(run_ + "/env.json"), "env.json");
  EXPECT_EQ(env.at("device").as_string(), "cpu");
  EXPECT_EQ(env.find("gpu"), nullptr);
}

TEST_F(DeviceOfARun, ANamedDeviceNeedsNoWords) {
  const Outcome outcome = train({"device=cpu"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(outcome.output.find("device:"), std::string::npos) << outcome.output;
}

// A run that began on another machine's GPU.
class RunOfAGpu : public DeviceOfARun {
 protected:
  void SetUp() override {
    DeviceOfARun::SetUp();
    const Outcome killed = train({"checkpoint.async=false"}, {"TESSERA_KILL_AT=step:6"});
    ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
    replace(run_ + "/config.resolved.yaml", "device: cpu\n", "device: cuda:0\n");
    replace(run_ + "/env.json", R"("device": "cpu")", R"("device": "cuda:0", "gpu": "NVIDIA H200")");
  }
};

TEST_F(RunOfAGpu, DoesNotGoOnWithoutItUnlessTold) {
  expect_refused(run({"resume", run_}));
  expect_refused(run({"eval", run_}));
}

TEST_F(RunOfAGpu, GoesOnOnTheCpuWithAWarning) {
  const Outcome outcome = run({"resume", run_, "device=cpu"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, R"(resume: device was "cuda:0", is "cpu"; the same bytes as an uninterrupted run are not promised)");
  expect_in(outcome.output, R"(resume: gpu was "NVIDIA H200", is not known;)");
  expect_in(outcome.output, "resuming at stage dense, step 4");
  expect_in(read_bytes(run_ + "/config.resolved.yaml"), "device: cpu\n");
  EXPECT_EQ(run({"eval", run_}).exit_code, 0);
}

TEST_F(RunOfAGpu, AForkStoresTheDeviceThatItTook) {
  const std::vector<std::string> fork{"fork", run_, "--at", "4", "--runs", folder_ / "runs"};
  expect_refused(run(fork));
  const std::string folder = folder_ / "runs/small/2";
  EXPECT_FALSE(std::filesystem::exists(folder)) << "refused before a folder is made";
  const Outcome outcome = run(joined(fork, {"device=auto"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "device: auto is the CPU: ");
  expect_in(read_bytes(folder + "/config.resolved.yaml"), "device: cpu\n");
}

TEST_F(RunOfAGpu, AutoSaysWhereItGoesOn) {
  const Outcome outcome = run({"resume", run_, R"(device="auto")"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  expect_in(outcome.output, "device: auto is the CPU: ");
  const Outcome named = run({"fork", run_, "--at", "4", "--runs", folder_ / "runs", "device=auto", "device=cpu"});
  ASSERT_EQ(named.exit_code, 0) << named.output;
  EXPECT_EQ(named.output.find("device: auto"), std::string::npos) << "the last override holds\n" << named.output;
}

TEST_F(RunOfAGpu, IsReadWithoutTheDevice) {
  for (const char* verb : {"status", "export"}) {
    std::vector<std::string> words{verb, run_};
    if (words[0] == "export") words.insert(words.end(), {"--layout", "torch", "--output", folder_ / "exported"});
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  }
  EXPECT_EQ(run({"eval", run_, "device=cpu"}).exit_code, 0);
  EXPECT_EQ(run({"diff", run_, run_}).exit_code, 0);
}

}  // namespace
}  // namespace tessera::testing
