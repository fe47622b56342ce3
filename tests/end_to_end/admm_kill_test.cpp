// A run of four stages, of which ADMM's leaves a layer dense by the clock, killed at 30 moments.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <thread>

#include "core/config/value.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

constexpr const char* kExperiment = R"(
version: 1
name: held
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
    - global_avg_pool
    - {linear: {out: 10, name: fc}}
stages:
  - {name: dense, train: 1e}
  - name: held
    train: 2e
    admm: {layers: "conv*", format: tucker2, ranks: {macs: 0.6}, keep: faster, rho: 1, update: 13s}
  - {name: factored, factorise: {from: held}}
  - {name: tuned, train: 8s, distill: {from: held}}
)";

// Its choices, but that a clock found conv1 not faster and all else faster.
std::string without_conv1(const std::string& decisions) {
  Value file = parse_json(decisions, "decisions.json");
  for (Value::Entry& entry : file.find("decisions")->as_map()) {
    if (!entry.key.starts_with("keep.")) continue;
    const bool conv1 = entry.key.starts_with("keep.layer ") && entry.key.find("\"in\":1,") != std::string::npos;
    entry.value = str(conv1 ? "not-faster" : "faster", " dense_ms 2 compressed_ms 1 ratio 2 low 1.5 high 2.5");
  }
  return to_json(file);
}

// Where a run was last seen.
std::string stage_of(const std::string& run) {
  const std::string path = run + "/status.json";
  return std::filesystem::exists(path) ? parse_json(read_bytes(path), path).at("stage").as_string() : "dense";
}

class AdmmKill : public ::testing::Test {
 protected:
  using Milliseconds = std::chrono::milliseconds;

  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/held/1"); }
  std::vector<std::string> train(const std::string& runs, bool replay) const {
    std::vector<std::string> words{"train", folder_ / "held.yaml", "--runs", folder_ / runs};
    if (replay) words.insert(words.end(), {"--decisions", folder_ / "chosen.json"});
    return words;
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  // Until all that the clock is asked has an answer: the network without conv1 is timed where it is first met.
  void choose() {
    write_bytes(folder_ / "held.yaml", kExperiment);
    for (int i = 0; i < 3; ++i) {
      const std::string runs = str("choosing-", i);
      expect_done(run_program(train(runs, i > 0)));
      write_bytes(folder_ / "chosen.json", without_conv1(read_bytes(run_in(runs) + "/decisions.json")));
    }
  }

  TemporaryFolder folder_;
};

TEST_F(AdmmKill, AtThirtyMomentsOfFourStages) {
  choose();
  const auto begin = std::chrono::steady_clock::now();
  expect_done(run_program(train("straight", true)));
  const auto whole = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - begin);
  const std::string straight = result_of(run_in("straight"));
  const std::string layers = read_bytes(run_in("straight") + "/layers.csv");
  expect_in(layers, "held,conv1,");
  expect_in(layers, ",dense,\"not faster at");
  expect_in(layers, ",constrained,");

  std::mt19937 random(30);
  std::map<std::string, int> kills;  // by stage; those before there was a run are not counted
  const auto all = [&] {
    int sum = 0;
    for (const auto& [stage, count] : kills) sum += count;
    return sum;
  };
  for (int run = 0; all() < 30 || kills.size() < 4; ++run) {
    ASSERT_LT(run, 60) << "some stage was never met";
    const std::string runs = str("killed-", run);
    std::vector<std::string> next = train(runs, true);
    for (bool ended = false; !ended;) {
      const Milliseconds wait(random() % static_cast<unsigned>(whole.count()));
      RunningProgram program(next);
      std::this_thread::sleep_for(wait);
      program.send(SIGKILL);
      const Outcome outcome = program.finish();
      ended = outcome.exit_code == 0;
      ASSERT_TRUE(ended || outcome.exit_code == 128 + SIGKILL) << outcome.output;
      if (std::filesystem::exists(run_in(runs) + "/config.resolved.yaml")) {
        next = {"resume", run_in(runs)};
        if (!ended) ++kills[stage_of(run_in(runs))];
      } else if (!ended) {  // killed before it was a run
        std::filesystem::remove_all(folder_ / runs);
      }
    }
    EXPECT_TRUE(result_of(run_in(runs)) == straight) << runs << ", after " << all() << " kills in all";
  }
}

}  // namespace
}  // namespace tessera::testing
