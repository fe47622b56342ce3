#include "bench/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.h"

namespace tessera::bench {
namespace {

std::vector<std::string> merged_environment(const std::vector<std::string>& overrides) {
  std::vector<std::string> merged = overrides;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited(*entry);
    const std::string_view name = inherited.substr(0, inherited.find('=') + 1);
    bool replaced = false;
    for (const std::string& line : overrides) replaced = replaced || line.starts_with(name);
    if (!replaced) merged.emplace_back(inherited);
  }
  return merged;
}

std::vector<char*> as_argv(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

// Closed in the child by exec, so that it sees the end of its input when this process closes its own end.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  TESSERA_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, IoError, "child: pipe failed: ", std::strerror(errno));
  return ends;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::signal(SIGPIPE, SIG_IGN);  // a dead child is reported by write_line, not by a signal
  const auto [child_in, parent_out] = make_pipe();
  const auto [parent_in, child_out] = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_out, STDOUT_FILENO);
  std::vector<std::string> words = arguments;
  std::vector<std::string> variables = merged_environment(environment);
  const int failure =
      posix_spawn(&pid_, words.front().c_str(), &actions, nullptr, as_argv(words).data(), as_argv(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(child_in);
  close(child_out);
  to_ = fdopen(parent_out, "w");
  from_ = fdopen(parent_in, "r");
  if (failure == 0) return;
  std::fclose(to_);
  std::fclose(from_);
  throw IoError(str("child: cannot start ", words.front(), ": ", std::strerror(failure)));
}

ChildProcess::~ChildProcess() {
  std::fclose(to_);
  std::fclose(from_);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::write_line(const std::string& line) {
  const bool sent = std::fputs(line.c_str(), to_) >= 0 && std::fputc('\n', to_) == '\n' && std::fflush(to_) == 0;
  TESSERA_CHECK(sent, IoError, "child: it ended before it was told '", line, "'");
}

std::string ChildProcess::read_line() {
  char* line = nullptr;
  std::size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, from_);
  std::string text(line != nullptr && length > 0 ? line : "");
  std::free(line);
  TESSERA_CHECK(length > 0, IoError, "child: it ended without an answer");
  if (text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace tessera::bench
