// A run on text, killed 20 times: while its text is tokenised, within its only epoch, at a factorisation, in a pruning ramp and
// after the pass that makes layers sparse.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "core/support/error.h"
#include "tests/end_to_end/kill_trial.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {
namespace {

using Milliseconds = std::chrono::milliseconds;

// Global steps: 1-16 dense, 17 factorised, 18-29 its training, 30-45 pruned, 46 made sparse, 47-54 its training.
constexpr const char* kExperiment = R"(
version: 1
name: text
seed: 4
deterministic: true
threads: {compute: 2, loader: 1}
data: {name: text, files: [words.txt], split: [98, 1, 1], tokenizer: {wordpiece: {vocab: vocab.txt}}, sequence: 16, batch: 8}
model: {name: gpt, layers: 1, width: 32, heads: 2, vocabulary: 57, length: 16, dropout: 0.1, sparse: {band: 3, density: 0.3}}
optimizer: {name: adamw, lr: 0.01}
schedule: {name: cosine, warmup: 3s}
ema: {decay: 0.9}
stages:
  - {name: dense, train: 16s}
  - {name: factored, train: 12s, factorise: {layers: "blocks.*.mlp.*", format: svd, ranks: {macs: 0.5}, keep: always}}
  - {name: pruned, train: 16s, prune: {layers: "blocks.*.attn.*", sparsity: {target: 0.5, end: 12s, every: 2s}}}
  - {name: sparse, train: 8s, sparsify: {keep: always}}
checkpoint: {every: 5s, keep: 2}
log_every: 3
)";

constexpr int kWords = 150'000;
constexpr int kInTokenising = 4;
constexpr int kAtRandom = 4;
constexpr Milliseconds kLongestWait{60'000};

// Words of 12 letters, hardly any of them twice, so that each is tokenised anew.
std::string words() {
  std::mt19937 random(1);
  std::string text;
  for (int word = 0; word < kWords; ++word) {
    for (int i = 0; i < 12; ++i) text += static_cast<char>('a' + random() % 26);
    text += word % 10 == 9 ? '\n' : ' ';
  }
  return text;
}

std::string vocabulary() {
  std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char letter = 'a'; letter <= 'z'; ++letter) lines += str(letter, "\n##", letter, '\n');
  return lines;
}

class TextKill : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "words.txt", words());
    write_bytes(folder_ / "vocab.txt", vocabulary());
    write_bytes(folder_ / "text.yaml", kExperiment);
  }

  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/text/1"); }
  std::vector<std::string> train(const std::string& runs) const {
    return {"train", folder_ / "text.yaml", "--runs", folder_ / runs};
  }
  std::vector<std::string> environment() const { return {"TESSERA_CACHE=" + cache()}; }
  std::string cache() const { return folder_ / "cache"; }

  // The names of complete token files and of partial ones.
  std::set<std::string> cached() const {
    std::set<std::string> names;
    std::error_code ignored;  // files appear and vanish
    for (const auto& entry : std::filesystem::directory_iterator(cache(), ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.find(".tokens") != std::string::npos) names.insert(name);
    }
    return names;
  }

  // Kills a run while it writes tokens. It leaves a partial file, next to those that earlier runs left.
  void kill_in_tokenising(std::mt19937& random) const {
    const std::set<std::string> before = cached();
    const auto begun = [&] {
      const std::set<std::string> now = cached();
      return std::ranges::any_of(now, [&](const std::string& name) { return !before.contains(name); });
    };
    RunningProgram program(train("tokens"), environment());
    const auto start = std::chrono::steady_clock::now();
    while (!begun()) {
      ASSERT_LT(std::chrono::steady_clock::now() - start, kLongestWait);
      std::this_thread::sleep_for(Milliseconds(1));
    }
    std::this_thread::sleep_for(Milliseconds(random() % 40));
    program.send(SIGKILL);
    const Outcome outcome = program.finish();
    ASSERT_EQ(outcome.exit_code, 128 + SIGKILL) << outcome.output;
    for (const std::string& name : cached()) ASSERT_TRUE(name.find(".tokens.tmp-") != std::string::npos) << name << ": too late";
    ASSERT_FALSE(std::filesystem::exists(folder_ / "tokens")) << "there is no run before there are tokens";
  }

  TemporaryFolder folder_;
};

TEST_F(TextKill, InTokenisingWithinAnEpochAndAcrossFactorisingAndPruning) {
  KillTrial trial{.train = [&](const std::string& runs) { return train(runs); },
                  .run_in = [&](const std::string& runs) { return run_in(runs); },
                  .forget = [&](const std::string& runs) { std::filesystem::remove_all(folder_ / runs); },
                  .environment = environment()};
  ASSERT_NO_FATAL_FAILURE(run_straight(trial));
  const std::string layers = read_bytes(run_in("straight") + "/layers.csv");
  expect_in(layers, "factored,blocks.0.mlp.fc1,linear,svd_linear,");
  expect_in(layers, "sparse,blocks.0.attn.qkv,linear,sparse_linear,");
  std::filesystem::remove_all(cache());

  std::mt19937 random(20);
  for (int i = 0; i < kInTokenising; ++i) ASSERT_NO_FATAL_FAILURE(kill_in_tokenising(random));
  // 12 kills. The run starts next to the partial token files.
  expect_survives(trial, {"step:5", "step:11", "save:16", "factorise:1", "step:20", "step:26", "save:29", "step:33", "step:38",
                          "step:43", "sparsify:3", "step:50"});
  EXPECT_EQ(std::ranges::count_if(cached(), [](const std::string& name) { return name.ends_with(".tokens"); }), 1)
      << "beside the parts, which stay for a day";
  expect_survives(trial, kAtRandom, 20);
}

}  // namespace
}  // namespace tessera::testing
