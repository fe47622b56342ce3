// A fixture whose tests share one finished run of a tiny experiment (tests/end_to_end/tiny_experiment.h), which they only read.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/end_to_end/program.h"
#include "tests/end_to_end/tiny_experiment.h"

namespace tessera::testing {

class TrainedRun : public ::testing::Test {
 protected:
  // For SetUpTestSuite.
  static void train_shared(const std::string& experiment, const std::vector<std::string>& overrides = {}) {
    folder_ = new TemporaryFolder();
    write_bytes(file(), experiment);
    const Outcome outcome = run_program(joined({"train", file(), "--runs", *folder_ / "runs"}, overrides));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::string file() { return *folder_ / "tiny.yaml"; }
  static std::string run() { return *folder_ / "runs/tiny/1"; }
  // For tests that damage it.
  static std::string copy_of_run(const std::string& name) {
    std::filesystem::copy(run(), *folder_ / name, std::filesystem::copy_options::recursive);
    return *folder_ / name;
  }

  static inline TemporaryFolder* folder_ = nullptr;
};

}  // namespace tessera::testing
