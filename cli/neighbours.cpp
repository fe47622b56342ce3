#include "cli/neighbours.h"

#include <poll.h>
#include <unistd.h>

#include <iostream>
#include <utility>

#include "cli/verb.h"
#include "core/io/vfs.h"
#include "core/support/error.h"

namespace tessera::cli {
namespace {

constexpr const char* kReady = "ready";

// Nothing is written to it: it ends when the process that started this one closes it, or ends.
bool input_has_ended() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

}  // namespace

void NeighbourProcesses::start(std::int64_t count, std::int64_t ranks, const std::string& begin) {
  const std::string file = folder_ / "begin";
  write_file_atomically(real_vfs(), file, begin);
  std::vector<std::string> words{"/proc/self/exe"};
  words.insert(words.end(), words_.begin(), words_.end());
  for (const std::string& word : {std::string("--ranks"), str(ranks), std::string(kNeighbourOption), file}) words.push_back(word);
  // Warnings are those that this process has had.
  for (std::int64_t i = 0; i < count; ++i) {
    processes_.push_back(std::make_unique<ChildProcess>(words, std::vector<std::string>{"TESSERA_LOG=error"}));
  }
  for (const auto& process : processes_) {
    const std::string answer = process->read_line();
    TESSERA_CHECK(answer == kReady, InternalError, "plan: a process beside this one says '", answer, "'");
  }
}

void NeighbourProcesses::stop() {
  for (const auto& process : processes_) process->finish();
  processes_.clear();
}

int be_neighbour(const Experiment& experiment, std::int64_t ranks, const std::string& begin) {
  bool said = false;
  take_steps_beside(experiment, ranks, real_vfs().read_file(begin), [&] {
    if (!std::exchange(said, true)) std::cout << kReady << std::endl;
    return !input_has_ended();
  });
  return kDone;
}

}  // namespace tessera::cli
