// A verb: its arguments, its help and what it does. Only verb.cpp reads CLI11, whose header costs seconds of each source.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tessera::cli {

// Exit codes: 0 done, 1 failed while running, 2 bad input, 3 stopped on purpose with nothing lost.
enum ExitCode : int { kDone = 0, kFailed = 1, kBadInput = 2, kStopped = 3 };

using Run = std::function<int()>;

class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}
  Argument& required();
  Argument& one_of(const std::vector<std::string_view>& texts);
  Argument& between(std::int64_t least, std::int64_t most);
  // What the help calls its value.
  Argument& placeholder(const std::string& name);
  // The help does not show it: for processes that the program starts itself.
  Argument& hidden();
  // Without a value it has this one.
  Argument& value_optional(const std::string& text);

 private:
  CLI::Option* option_;
};

// Refers to what Program holds, so it is passed and copied by value.
class Verb {
 public:
  // A verb below this one.
  Verb add(const std::string& name, const std::string& help) const;
  // A name that begins with dashes is an option, any other a position. Values live as long as the program; what they hold
  // now is the default that the help shows.
  Argument argument(const std::string& name, std::string& value, const std::string& help) const;
  Argument argument(const std::string& name, std::int64_t& value, const std::string& help) const;
  Argument argument(const std::string& name, double& value, const std::string& help) const;
  Argument argument(const std::string& name, std::vector<double>& values, const std::string& help) const;  // with commas between
  Argument argument(const std::string& name, std::vector<std::string>& values, const std::string& help) const;
  void flag(const std::string& name, bool& value, const std::string& help) const;
  // Below the help of the arguments: examples, exit codes.
  void footer(const std::string& text) const;
  // What to do once the whole command line is read. Throws ConfigError, then, where mpirun has started several processes.
  void runs(Run run) const;
  // The same for what several processes do together.
  void runs_in_ranks(Run run) const;
  // As the user writes it: "tessera data check".
  std::string command() const;

 private:
  friend class Program;
  Verb(CLI::App* app, Run* chosen) : app_(app), chosen_(chosen) {}

  CLI::App* app_;
  Run* chosen_;  // the program's
};

class Program {
 public:
  Program(const std::string& name, const std::string& help, const std::string& version);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();
  // Its verbs are added to this.
  Verb root() { return {app_.get(), &chosen_}; }
  // What the command line asks for; of one that asks for help, or that is wrong, to say so.
  Run parse(int argc, char** argv);

 private:
  std::string unknown_verb(int argc, char** argv) const;

  std::unique_ptr<CLI::App> app_;
  Run chosen_;
};

}  // namespace tessera::cli
