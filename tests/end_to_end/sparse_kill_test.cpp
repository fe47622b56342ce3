// A run that prunes, gives layers sparse kernels by the clock and trains on, killed at 30 moments in its ramp, its timings and
// its fine-tuning.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <thread>

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
  - {name: sparse, train: 1e, sparsify: {keep: faster}}
  - {name: finetuned, train: 1e}
)";

constexpr std::size_t kKills = 30;
constexpr int kMostRuns = 20;
constexpr const char* kTimingLine = ": timing ";

// Where a run was killed, according to its status, which it writes with every log line.
struct Moment {
  std::string stage;
  std::int64_t step = 0;  // within the stage
  bool timing = false;  // timing a layer or the network

  std::string phase() const {
    if (timing) return "timing";
    if (stage == "pruned" && step >= 4 && step <= 41) return "ramp";  // the next log line is at the ramp's end at the latest
    return stage == "finetuned" && step > 0 ? "fine-tuning" : "between";
  }
};

Moment moment_of(const std::string& run, std::string output) {
  while (output.ends_with('\n')) output.pop_back();
  const std::string last_line = output.substr(output.rfind('\n') + 1);
  const Value status = parse_json(read_bytes(run + "/status.json"), "status.json");
  return {.stage = status.at("stage").as_string(),
          .step = status.at("stage_step").as_int(),
          .timing = last_line.find(kTimingLine) != std::string::npos};
}

// A random time below `within`, counted from the moment the program prints `text`, or from its start if `text` is empty.
struct Aim {
  std::string text;
  std::chrono::milliseconds within;
};

class SparseKill : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "sparse.yaml", kExperiment); }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/sparse/1"); }
  std::string chosen() const { return folder_ / "chosen.json"; }
  // Without a file of decisions the clock makes all of them.
  std::vector<std::string> train(const std::string& runs, const std::string& decisions = "") const {
    std::vector<std::string> words{"train", folder_ / "sparse.yaml", "--runs", folder_ / runs};
    if (!decisions.empty()) words.insert(words.end(), {"--decisions", decisions});
    return words;
  }
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  // Records a clock's answers, then replaces the verdicts: conv2 is not faster, everything else is.
  void choose() {
    for (int i = 0; i < 3; ++i) {
      const std::string runs = str("choosing-", i);
      expect_done(run_program(train(runs, i > 0 ? chosen() : "")));
      Value file = parse_json(read_bytes(run_in(runs) + "/decisions.json"), "decisions.json");
      for (Value::Entry& entry : file.find("decisions")->as_map()) {
        if (!entry.key.starts_with("keep.")) continue;
        const bool conv = entry.key.starts_with("keep.layer ") && entry.key.find("conv2d") != std::string::npos;
        entry.value = str(conv ? "not-faster" : "faster", " dense_ms 2 compressed_ms 1 ratio 2 low 1.5 high 2.5");
      }
      write_bytes(chosen(), to_json(file));
    }
  }

  // Two aims in the ramp, two in the timings and one in the fine-tuning, whose lengths come from an uninterrupted run.
  std::vector<Aim> aims() const {
    using Clock = std::chrono::steady_clock;
    RunningProgram program(train("timed"));
    std::vector<Clock::time_point> times{Clock::now()};
    for (const char* text : {"pruned epoch 2", kTimingLine, " matched layers ", "sparse epoch 1", "done: "}) {
      EXPECT_TRUE(program.wait_for(text)) << text;
      times.push_back(Clock::now());
    }
    program.finish();
    const auto between = [&](std::size_t from, std::size_t to) {
      return std::chrono::duration_cast<std::chrono::milliseconds>(times[to] - times[from]) + std::chrono::milliseconds(1);
    };
    const Aim ramp{"", between(0, 1)}, timing{kTimingLine, between(2, 3)}, fine_tuning{"sparse epoch 1", between(4, 5)};
    return {ramp, ramp, timing, timing, fine_tuning};
  }

  // Kills one run at each aim, unless it ends before, and resumes it to its end. An aim after the end is moved nearer: other
  // load may have slowed the run while it was measured.
  void kill_at(std::vector<Aim>& aims, const std::string& runs, std::mt19937& random, std::vector<Moment>& moments) const {
    std::vector<std::string> next = train(runs);
    for (Aim& aim : aims) {
      RunningProgram program(next);
      if (!aim.text.empty() && !program.wait_for(aim.text)) return expect_done(program.finish());
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % static_cast<unsigned>(aim.within.count())));
      program.send(SIGKILL);
      const Outcome outcome = program.finish();
      if (outcome.exit_code == 0) {
        aim.within = aim.within / 2 + std::chrono::milliseconds(1);
        return;
      }
      ASSERT_EQ(outcome.exit_code, 128 + SIGKILL) << outcome.output;
      if (std::filesystem::exists(run_in(runs) + "/status.json")) {
        next = {"resume", run_in(runs)};
        moments.push_back(moment_of(run_in(runs), outcome.output));
      } else {  // killed before it became a run
        std::filesystem::remove_all(folder_ / runs);
      }
    }
    expect_done(run_program(next));
  }

  TemporaryFolder folder_;
};

// The runs replay what the clock found.
TEST_F(SparseKill, InTheRampAtThePassAndInTheFineTuning) {
  choose();
  KillTrial trial{.train = [&](const std::string& runs) { return train(runs, chosen()); },
                  .run_in = [&](const std::string& runs) { return run_in(runs); },
                  .forget = [&](const std::string& runs) { std::filesystem::remove_all(folder_ / runs); }};
  run_straight(trial);
  const std::string layers = read_bytes(run_in("straight") + "/layers.csv");
  expect_in(layers, "sparse,conv2,conv2d,conv2d,");
  expect_in(layers, "sparse,fc1,linear,sparse_linear,");
  expect_survives(trial, {"step:12", "step:33", "save:45", "sparsify:1", "step:70", "step:90"});
}

// Each run reads a clock. An uninterrupted run then replays the answers of the run that ended.
TEST_F(SparseKill, AtThirtyRandomMoments) {
  std::vector<Aim> all = aims();
  std::mt19937 random(31);
  std::vector<Moment> moments;
  std::map<std::string, int> phases;
  std::string text;
  for (int run = 0; moments.size() < kKills || phases.size() < 3; ++run) {
    ASSERT_LT(run, kMostRuns) << text;
    const std::string killed = str("killed-", run), replayed = str("replayed-", run);
    const std::size_t before = moments.size();
    ASSERT_NO_FATAL_FAILURE(kill_at(all, killed, random, moments));
    expect_done(run_program(train(replayed, run_in(killed) + "/decisions.json")));
    for (std::size_t i = before; i < moments.size(); ++i) {
      const Moment& at = moments[i];
      if (at.phase() != "between") ++phases[at.phase()];
      text += str(i == 0 ? "" : ", ", at.stage, ' ', at.step, " (", at.phase(), ')');
    }
    EXPECT_TRUE(result_of(run_in(killed)) == result_of(run_in(replayed))) << killed << ": " << text;
  }
  RecordProperty("kills", text);
  for (const char* phase : {"ramp", "timing", "fine-tuning"}) EXPECT_GE(phases[phase], 1) << text;
}

// A timing that was finished but not recorded is repeated.
TEST_F(SparseKill, InTheTimingOfALayer) {
  const Outcome killed = run_program(train("timing"), {"TESSERA_KILL_AT=timing:2"});
  ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  expect_done(run_program({"resume", run_in("timing")}));
  expect_done(run_program(train("replayed", run_in("timing") + "/decisions.json")));
  EXPECT_TRUE(result_of(run_in("timing")) == result_of(run_in("replayed")));
}

}  // namespace
}  // namespace tessera::testing
