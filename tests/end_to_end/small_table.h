// A table of small runs, for tests of what reproduces it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_glyphs.h"

namespace tessera::testing {

inline std::string base_experiment() {
  return small_glyphs("base", "checkpoint: {every: 3s, keep: 2}\nlog_every: 3\n",
                      "    - {conv2d: {out: 16, kernel: 1, bias: false, name: conv3}}\n    - relu\n");
}
inline constexpr const char* kDense = R"(
stages:
  - {name: pretrain, train: 1e, optimizer: {lr: 0.05}}
  - {name: dense, train: 8s}
)";
inline constexpr const char* kFactored = R"(
stages:
  - {name: pretrain, train: 1e, optimizer: {lr: 0.05}}
  - {name: truncated, factorise: {layers: [conv2, conv3], format: tucker2, ranks: {out: 4, in: 4}, keep: always}}
  - {name: tuned, train: 8s}
)";
// Of a table: its seeds and what is tuned.
inline constexpr const char* kTableHead = R"(
version: 1
name: small
seeds: [1, 2]
tune: {key: optimizer.lr, values: [0.05, 0.01], seed: 1}
)";
inline constexpr const char* kTableRest = R"(
arms:
  - {name: dense, experiment: dense.yaml}
  - {name: direct, experiment: factored.yaml}
  - {name: smaller, experiment: factored.yaml, set: ["stages[1].factorise.ranks={out: 2, in: 2}"]}
questions: [{ask: "Is it better?", arm: direct, against: dense}]
published: [{name: Another, top1: 91.5, source: A paper, conditions: other data}]
latency: {batch: [1, 8], repeats: 5}
training: {batch: [8], repeats: 5}
)";

class Reproduce : public ::testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder_ / "dense.yaml", base_experiment() + kDense);
    write_bytes(folder_ / "factored.yaml", base_experiment() + kFactored);
    write_bytes(folder_ / "small.yaml", std::string(kTableHead) + kTableRest);
  }

  Outcome reproduce(const std::string& to, const std::vector<std::string>& more = {},
                    const std::vector<std::string>& environment = {}) {
    return run_program(
        joined({"reproduce", folder_ / "small.yaml", "--runs", folder_ / (to + "/runs"), "--results", folder_ / to}, more),
        environment);
  }
  std::vector<Value> results(const std::string& to) const {
    std::vector<Value> lines;
    for (const std::string& line : split(read_bytes(folder_ / (to + "/small.jsonl")), '\n')) {
      if (!line.empty()) lines.push_back(parse_json(line, "small.jsonl"));
    }
    return lines;
  }
  // Each row of the CSV without the cells of the clock.
  std::string table_without_clocks(const std::string& to) const {
    std::string text;
    for (const std::vector<std::string>& row : parse_csv(read_bytes(folder_ / (to + "/small.csv")), "small.csv")) {
      for (std::size_t i = 0; i < 12; ++i) text += row.at(i) + ',';
      for (std::size_t i = 13; i < 17; ++i) text += row.at(i) + ',';
      text += '\n';
    }
    return text;
  }

  TemporaryFolder folder_;
};

}  // namespace tessera::testing
