#include "tests/end_to_end/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tessera::testing {
namespace {

[[noreturn]] void become_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                                 int output, const std::string& standard_output) {
  dup2(standard_output.empty() ? output : open(standard_output.c_str(), O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  for (const std::string& entry : environment) putenv(const_cast<char*>(entry.c_str()));
  std::vector<char*> argv{const_cast<char*>(TESSERA_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(TESSERA_PROGRAM, argv.data());
  _exit(127);
}

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                    const std::string& standard_output) {
  return RunningProgram(arguments, environment, standard_output).finish();
}

RunningProgram::RunningProgram(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                               const std::string& standard_output) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) throw std::runtime_error("pipe failed");
  child_ = fork();
  if (child_ == 0) become_program(arguments, environment, pipe_ends[1], standard_output);
  close(pipe_ends[1]);
  pipe_ = pipe_ends[0];
}

RunningProgram::~RunningProgram() {
  close(pipe_);
  if (child_ < 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

bool RunningProgram::read_more() {
  std::array<char, 4096> buffer{};
  const ssize_t count = read(pipe_, buffer.data(), buffer.size());
  if (count > 0) output_.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0;
}

bool RunningProgram::wait_for(const std::string& text) {
  while (output_.find(text) == std::string::npos) {
    if (!read_more()) return false;
  }
  return true;
}

bool RunningProgram::ends_within(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd output{.fd = pipe_, .events = POLLIN, .revents = 0};
    if (left.count() < 0 || poll(&output, 1, static_cast<int>(left.count())) == 0) return false;
    if (!read_more()) return true;
  }
}

void RunningProgram::send(int signal) const { kill(child_, signal); }

Outcome RunningProgram::finish() {
  while (read_more()) {
  }
  int status = 0;
  waitpid(child_, &status, 0);
  child_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), output_};
}

std::vector<std::string> joined(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
}

void expect_outcome(const Outcome& outcome, int exit_code, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.output;
  expect_in(outcome.output, part);
}

std::string newest_checkpoint(const std::string& run) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-")) newest = std::max(newest, entry.path().string());
  }
  return newest;
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return std::move(bytes).str();
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace tessera::testing
