// Ranks on two hosts: network namespaces with a cable between them, in which mpirun starts one rank each. Needs root.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/ranks_program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/end_to_end/small_text.h"

namespace tessera::testing {
namespace {

bool runs(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

class TwoHosts {
 public:
  TwoHosts() : first_(str("tessera", getpid(), "a")), second_(str("tessera", getpid(), "b")) {
    there_ = runs(str("ip netns add ", first_)) && runs(str("ip netns add ", second_)) &&
             runs(str("ip -n ", first_, " link add cable type veth peer name cable netns ", second_)) && begins(first_, kFirst) &&
             begins(second_, kSecond);
    write_bytes(
        folder_ / "agent",
        str("#!/bin/sh\nhost=$1\nshift\nif [ $host = ", kFirst, " ]; then name=", first_, "; else name=", second_, "; fi\n",
            in("$name", "hostname $name; export TESSERA_CACHE=${TESSERA_CACHE:+$TESSERA_CACHE/$name}; $*"), '\n'));
    std::filesystem::permissions(folder_ / "agent", std::filesystem::perms::owner_all);
  }
  ~TwoHosts() {
    runs(str("ip netns del ", first_));
    runs(str("ip netns del ", second_));
  }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;

  bool there() const { return there_; }
  // The shell command of mpirun on the first host, which starts one rank there and the others on the second host. Caches in
  // TESSERA_CACHE are separate for each host.
  std::string mpirun(const std::vector<std::string>& words, int on_second = 1) const {
    std::string command =
        str(TESSERA_MPIRUN, " -n ", 1 + on_second, " --host ", kFirst, ":1,", kSecond, ':', on_second,
            " --bind-to none --mca plm_rsh_agent ", folder_ / "agent", " --mca btl tcp,self ", TESSERA_OF_RANKS);
    for (const std::string& word : words) command += ' ' + word;
    return in(first_, str("hostname ", first_, "; exec ", command));
  }
  void pull_the_cable() const { ASSERT_TRUE(runs(str("ip -n ", second_, " link set cable down"))); }
  void plug_it_in() const { ASSERT_TRUE(runs(str("ip -n ", second_, " link set cable up"))); }

 private:
  static constexpr const char* kFirst = "10.77.0.1";
  static constexpr const char* kSecond = "10.77.0.2";

  static bool begins(const std::string& host, const char* address) {
    const std::string ip = str("ip -n ", host, ' ');
    return runs(str(ip, "addr add ", address, "/24 dev cable")) && runs(ip + "link set cable up") && runs(ip + "link set lo up");
  }
  // Runs commands on a host under its own host name, by which Open MPI tells hosts apart.
  static std::string in(const std::string& host, const std::string& commands) {
    return str("exec ip netns exec ", host, " unshare --uts sh -c \"", commands, '"');
  }

  TemporaryFolder folder_;
  std::string first_, second_;
  bool there_ = false;
};

class RanksOnTwoHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!hosts_.there()) GTEST_SKIP() << "no network namespaces";
    write_bytes(folder_ / "small.yaml", small_experiment_of_ranks());
  }
  std::vector<std::string> train(const std::string& runs, const std::vector<std::string>& more = {}) const {
    return joined({"train", folder_ / "small.yaml", "--runs", folder_ / runs}, more);
  }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }

  TwoHosts hosts_;
  TemporaryFolder folder_;
};

TEST_F(RanksOnTwoHosts, HaveTheBytesOfRanksOnOne) {
  const Outcome apart = run_program({"-c", hosts_.mpirun(train("apart"))}, kRanksEnvironment);
  ASSERT_EQ(apart.exit_code, 0) << apart.output;
  std::string one = str(TESSERA_MPIRUN, " -n 2 --bind-to none ", TESSERA_OF_RANKS);
  for (const std::string& word : train("together", {"--decisions", run_in("apart") + "/decisions.json"})) one += ' ' + word;
  const Outcome together = run_program({"-c", one}, kRanksEnvironment);
  ASSERT_EQ(together.exit_code, 0) << together.output;
  EXPECT_TRUE(result_of(run_in("apart")) == result_of(run_in("together")));
  std::istringstream log(read_bytes(run_in("apart") + "/train.rank1.log"));
  std::string first;
  std::getline(log, first);
  expect_in(first, str(" on tessera", getpid(), "b, 1 compute threads"));
}

// The second rank of the second host finds the tokens that its first rank has written there.
TEST_F(RanksOnTwoHosts, OneRankOfEachTokenisesTheText) {
  write_bytes(folder_ / "a.txt", numbered_lines(2000));
  write_bytes(folder_ / "text.yaml", R"(
version: 1
name: small
threads: {compute: 1, loader: 0}
data: {name: text, files: [a.txt], split: [80, 20, 0], tokenizer: bytes, sequence: 16, batch: 6}
model: {name: gpt, layers: 1, width: 16, heads: 2}
optimizer: {name: adamw, lr: 0.001}
stages: [{name: dense, train: 2s}]
)");
  const std::vector<std::string> words{"train", folder_ / "text.yaml", "--runs", folder_ / "r"};
  const Outcome outcome = run_program({"-c", hosts_.mpirun(words, 2)},
                                      joined(kRanksEnvironment, {"TESSERA_LOG=debug", "TESSERA_CACHE=" + (folder_ / "cache")}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::string made = "text: tokens are in ";
  expect_in(outcome.output, "tessera: " + made);
  expect_in(outcome.output, "rank 1: " + made);
  EXPECT_EQ(outcome.output.find("rank 2: " + made), std::string::npos) << outcome.output;
}

// Each host times some of the layers, and rank 0 chooses by all times. A replay on one host gives the same bytes.
TEST_F(RanksOnTwoHosts, TimeRanksByLatencyOnBoth) {
  const std::string text =
      changed(changed(small_experiment_of_ranks(), "ranks: {out: 8, in: 4}", "ranks: {latency: {speedup: 1.2}}"),
              "layers: conv2, format: tucker2", "layers: [conv1, conv2], format: tucker2");
  write_bytes(folder_ / "small.yaml", text);
  const std::vector<std::string> no_cache = joined(kRanksEnvironment, {"TESSERA_CACHE="});
  const Outcome apart = run_program({"-c", hosts_.mpirun(train("apart"))}, no_cache);
  ASSERT_EQ(apart.exit_code, 0) << apart.output;
  const std::string log = read_bytes(run_in("apart") + "/train.rank1.log");
  expect_in(log, "timed ranks of conv");
  const std::string decisions = read_bytes(run_in("apart") + "/decisions.json");
  expect_in(decisions, "latency.layer ");
  expect_in(decisions, "latency.network ");
  std::string one = str(TESSERA_MPIRUN, " -n 2 --bind-to none ", TESSERA_OF_RANKS);
  for (const std::string& word : train("together", {"--decisions", run_in("apart") + "/decisions.json"})) one += ' ' + word;
  const Outcome together = run_program({"-c", one}, no_cache);
  ASSERT_EQ(together.exit_code, 0) << together.output;
  EXPECT_TRUE(result_of(run_in("apart")) == result_of(run_in("together")));
  EXPECT_EQ(read_bytes(run_in("together") + "/train.rank1.log").find("timed ranks"), std::string::npos);
}

// The missing heartbeat reveals the broken network. mpirun itself would wait for the other host.
TEST_F(RanksOnTwoHosts, APulledCableEndsAll) {
  RunningProgram program({"-c", hosts_.mpirun(train("cut", {"stages[0].train=3000e", "--time-limit", "60s"}))},
                         kRanksEnvironment);
  ASSERT_TRUE(program.wait_for("dense epoch 2"));
  hosts_.pull_the_cable();
  EXPECT_TRUE(program.wait_for("rank 1 has not answered for 7 seconds; all ranks end, and the last checkpoint stands"));
  hosts_.plug_it_in();
  EXPECT_NE(program.finish().exit_code, 0);
  const std::string resume =
      str(TESSERA_MPIRUN, " -n 2 --bind-to none ", TESSERA_OF_RANKS, " resume ", run_in("cut"), " --time-limit 1s");
  expect_outcome(run_program({"-c", resume}, kRanksEnvironment), 3, "stopped; everything is saved");
}

// Only rank 0 writes. A save that does not fit ends both ranks with one message.
TEST(RanksOnAFullDisk, EndWithOneMessage) {
  const TemporaryFolder folder;
  write_bytes(folder / "small.yaml", small_experiment_of_ranks());
  std::filesystem::create_directories(folder / "small");
  const std::string mounted = str("unshare --mount sh -c \"mount -t tmpfs -o size=64k none ", folder / "small", " && ");
  if (!runs(mounted + "true\"")) GTEST_SKIP() << "no right to mount a file system";
  const Outcome outcome =
      run_program({"-c", str("exec ", mounted, "exec ", TESSERA_MPIRUN, " -n 2 --bind-to none ", TESSERA_OF_RANKS, " train ",
                             folder / "small.yaml", " --runs ", folder / "small", '"')},
                  kRanksEnvironment);
  const std::string error = "tessera: checkpoint: not enough space";
  expect_outcome(outcome, 1, error);
  EXPECT_EQ(outcome.output.find(error), outcome.output.rfind(error)) << outcome.output;
  EXPECT_EQ(outcome.output.find("rank 1"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace tessera::testing
