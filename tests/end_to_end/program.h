// Runs the tessera program as a user would: arguments in, exit code and output back.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/core/io/temporary_folder.h"

namespace tessera::testing {

struct Outcome {
  int exit_code = -1;  // 128 + signal number when a signal ended it
  std::string output;  // standard output and standard error together
};

// `environment` holds NAME=value entries added to the test's own. `standard_output` is a file to write to in place of the
// outcome's.
Outcome run_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                    const std::string& standard_output = "");

// A program under way, for tests that meddle with it. Killed at the end of the scope unless it was waited for.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                          const std::string& standard_output = "");
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  bool wait_for(const std::string& text);  // until its output holds the text; false when it ended without
  bool ends_within(std::chrono::milliseconds time);  // waits no longer than it takes
  void send(int signal) const;
  pid_t process() const noexcept { return child_; }
  Outcome finish();  // all output, from its start

 private:
  bool read_more();

  pid_t child_ = -1;
  int pipe_ = -1;
  std::string output_;
};

// `arguments`, then `more`.
std::vector<std::string> joined(std::vector<std::string> arguments, const std::vector<std::string>& more);

void expect_in(const std::string& text, const std::string& part);
// The exit code, and a part of the output.
void expect_outcome(const Outcome& outcome, int exit_code, const std::string& part);

// The path of a run's newest checkpoint; "" when it has none.
std::string newest_checkpoint(const std::string& run);

std::string read_bytes(const std::filesystem::path& path);
void write_bytes(const std::filesystem::path& path, const std::string& bytes);

}  // namespace tessera::testing
