// The command line of a benchmark program: options with a value, and flags.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::bench {

class Arguments {
 public:
  // `purpose` is the rest of the sentence that begins with the program's name.
  Arguments(std::string program, std::string purpose) : program_(std::move(program)), purpose_(std::move(purpose)) {}

  // Each target holds the default and must outlive this object. Counts are 1 to `most`; a default of 0 is one that cannot be
  // given, and the usage does not show it.
  Arguments& count(std::string name, std::int64_t& target, std::string help, std::int64_t most = 65536);
  Arguments& text(std::string name, std::string& target, std::string help);
  Arguments& flag(std::string name, bool& target, std::string help);

  Arguments& command(std::string& target);  // the program's name and the words read, paths by their last name

  const std::string& program() const noexcept { return program_; }
  std::string usage() const;
  void read(std::span<const std::string_view> words);  // throws ConfigError naming the program, the option and the rule

  // Throws ConfigError where one of the options was read: "some_bench: --steps has no effect `why`; leave it out".
  void refuse(std::span<const std::string_view> names, const std::string& why) const;

 private:
  struct Option {
    std::string name;
    std::string value;  // what follows the name in the usage; empty for a flag
    std::string help;
    std::function<void(std::string_view)> set;
    bool given = false;
  };

  std::string program_;
  std::string purpose_;
  std::string* command_ = nullptr;
  std::vector<Option> options_;
};

// What every benchmark program takes.
struct CommonOptions {
  std::int64_t rounds = 30;
  std::int64_t threads = 2;
  std::string results;
  bool dry_run = false;
  std::string command = {};  // that repeats the run
};
void add_common(Arguments& arguments, CommonOptions& options);

// A rival in Python.
struct TorchOptions {
  std::string python = "/usr/bin/python3";  // without a default its rows are left out where none is given
  std::string script;
  std::int64_t sweep_runs = 5;
  std::string unit = "runs";  // of what --sweep-... counts
};
// --python, --script and --sweep-runs, or another unit's. `needed`: what the interpreter has to have.
void add_torch(Arguments& arguments, TorchOptions& options, const std::string& needed = "torch");

// Where results go. `official` is for those of everything, from which tables are made: with an `only` that chooses a part results
// are printed unless --results names a file.
CommonOptions destination(CommonOptions options, const std::string& only, const std::string& official);

// Reads the words and calls `measure`. Returns the exit code: 0 done, 1 the measurement failed or is void, 2 unusable
// arguments or surroundings, such as a variable that holds back one side's instruction set; --help prints the usage. The only
// place of a benchmark program that catches and prints errors. Warnings go to standard error.
int run_benchmark(Arguments& arguments, std::span<const std::string_view> words, const std::function<void()>& measure);
// How many warnings it has printed so far, such as those of disturbed timings.
std::int64_t warnings_printed();

}  // namespace tessera::bench
