// Runs of a tiny experiment (tests/end_to_end/tiny_experiment.h) whose stages prune, for tests of what becomes of the weights.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/tensor.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"
#include "tests/end_to_end/tiny_experiment.h"

namespace tessera::testing {

class TinyRuns : public ::testing::Test {
 protected:
  explicit TinyRuns(const char* rest, const TinyOptions& options = {});

  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/tiny/1"); }
  std::vector<std::string> train(const std::string& runs, const std::vector<std::string>& more = {}) const;
  static void expect_done(const Outcome& outcome) { ASSERT_EQ(outcome.exit_code, 0) << outcome.output; }

  // The model's tensors in the newest checkpoint.
  static std::map<std::string, Tensor> tensors(const std::string& run);
  static std::int64_t kept(const std::string& run);  // elements of conv2's weight that are not zero
  // What the lines of metrics.jsonl have under `key`.
  static std::vector<Value> rows_of(const std::string& run, const std::string& key);

  // A run killed at each of these places in turn ends with the bytes of one that is not.
  void expect_survives(std::initializer_list<const char*> places, const std::vector<std::string>& changes = {}) const;
  // Trains below "forged", where a clock finds nothing faster.
  void train_where_nothing_is_faster(const std::vector<std::string>& changes) const;

  TemporaryFolder folder_;
};

}  // namespace tessera::testing
