#include "core/io/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/support/error.h"

namespace tessera {
namespace {

std::string_view name_of(std::string_view line) { return line.substr(0, line.find('=')); }

std::vector<std::string> merged_environment(const std::vector<std::string>& overrides) {
  std::vector<std::string> merged;
  for (const std::string& line : overrides) {
    if (line.find('=') != std::string::npos) merged.push_back(line);
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::ranges::find(overrides, name_of(*entry), name_of) == overrides.end()) merged.emplace_back(*entry);
  }
  return merged;
}

std::vector<char*> as_argv(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return str("signal ", WTERMSIG(status), ", ", strsignal(WTERMSIG(status)));
  return str("exit status ", WEXITSTATUS(status));
}

// The child's exec closes both ends, so that the child sees the end of its input when this process closes its own end.
std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  TESSERA_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, IoError, "child: pipe failed: ", std::strerror(errno));
  return ends;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
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
  std::fclose(from_);  // comes first: a child that waits for its answer to be read has to see that nobody will read it
  end();
}

Value ChildProcess::ask(const std::string& line, const char* who) {
  write_line(line);
  return parse_json(read_line(), who);
}

void ChildProcess::close_input() {
  if (to_ != nullptr) std::fclose(std::exchange(to_, nullptr));
}

const std::string& ChildProcess::end() {
  if (!ended_.empty()) return ended_;
  close_input();
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  return ended_ = how_it_ended(status);
}

void ChildProcess::finish() { TESSERA_CHECK(end() == how_it_ended(0), IoError, "child: it failed (", end(), ")"); }

void ChildProcess::write_line(const std::string& line) {
  std::signal(SIGPIPE, SIG_IGN);  // a dead child is reported here, not by a signal
  const bool sent =
      to_ != nullptr && std::fputs(line.c_str(), to_) >= 0 && std::fputc('\n', to_) == '\n' && std::fflush(to_) == 0;
  if (!sent) throw IoError(str("child: it ended before it was told '", line, "' (", end(), ")"));
}

std::string ChildProcess::read_line() {
  char* line = nullptr;
  std::size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, from_);
  std::string text(line != nullptr && length > 0 ? line : "");
  std::free(line);
  if (length <= 0) throw IoError(str("child: it ended without an answer (", end(), ")"));
  if (text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace tessera
