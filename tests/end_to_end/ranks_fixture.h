// A small run in several processes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/ranks_program.h"
#include "tests/end_to_end/small_run.h"

namespace tessera::testing {

inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Ranks : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string small =
        changed(small_experiment_of_ranks(), "{out: 16, ", "{out: 96, ");  // for which ways to compute are timed
    write_bytes(folder_ / "small.yaml", small);
    write_bytes(folder_ / "plain.yaml", changed(small, "    - {batch_norm: {name: bn1}}\n", ""));
  }
  std::vector<std::string> train(const std::string& file, const std::string& runs,
                                 const std::vector<std::string>& more = {}) const {
    return joined({"train", folder_ / file, "--runs", folder_ / runs}, more);
  }
  // Trains below "together<ranks>" and once more, in one process, below "alone<ranks>".
  void expect_as_one_process(const std::string& file, int ranks, const std::string& below = "", int batch = 32) {
    SCOPED_TRACE(str(file, ", ", ranks));
    const std::string together = str(below, "together", ranks), alone = str(below, "alone", ranks);
    const Outcome outcome = run_ranks(ranks, train(file, together), {"TESSERA_COMPARE_RANKS=1"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "run folder: "), 1) << outcome.output;
    const std::vector<std::string> choices{"--decisions", run_in(together) + "/decisions.json"};
    const Outcome one = run_ranks(1, joined(train(file, alone, {str("micro_batch=", batch / ranks)}), choices));
    ASSERT_EQ(one.exit_code, 0) << one.output;
    EXPECT_TRUE(result_of(run_in(together)) == result_of(run_in(alone)));
    EXPECT_NE(read_bytes(run_in(together) + "/env.json").find(str("\"ranks\": ", ranks)), std::string::npos);
  }
  std::string run_in(const std::string& runs) const { return folder_ / (runs + "/small/1"); }

  TemporaryFolder folder_;
};

}  // namespace tessera::testing
