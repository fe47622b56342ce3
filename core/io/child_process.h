// A child program that answers lines with lines, for measurements with a part that must run in a process of its own.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "core/config/value.h"

namespace tessera {

class ChildProcess {
 public:
  // Starts `arguments` (the program first, an absolute path) with `environment` over the inherited one: "NAME=value" sets a
  // variable, "NAME" removes it.
  // Throws IoError when it cannot be started.
  ChildProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);
  // Closes its input, which ends it, and waits.
  ~ChildProcess();
  // Closes its input, which tells it to end, and does not wait.
  void close_input();
  // Closes its input and waits. It must have nothing left to write. Throws IoError unless its exit status is 0.
  void finish();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Both throw IoError when the child has ended, with its exit status or the signal. From the first line written on, this process
  // ignores SIGPIPE.
  void write_line(const std::string& line);
  std::string read_line();  // without the newline
  // Writes the line and reads a JSON object. `who` names the child in messages.
  Value ask(const std::string& line, const char* who);

 private:
  // Closes its input and waits; how it ended: "exit status 3", "signal 6, Aborted".
  const std::string& end();

  pid_t pid_ = -1;
  std::string ended_;  // empty until then
  std::FILE* to_ = nullptr;  // null when it is closed
  std::FILE* from_ = nullptr;
};

}  // namespace tessera
