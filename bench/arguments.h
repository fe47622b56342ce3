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

  // Each target holds the default and must outlive this object. Counts are at least 1.
  Arguments& count(std::string name, std::int64_t& target, std::string help);
  Arguments& text(std::string name, std::string& target, std::string help);
  Arguments& flag(std::string name, bool& target, std::string help);

  const std::string& program() const noexcept { return program_; }
  std::string usage() const;
  void read(std::span<const std::string_view> words) const;  // throws ConfigError naming the program, the option and the rule

 private:
  struct Option {
    std::string name;
    std::string value;  // what follows the name in the usage; empty for a flag
    std::string help;
    std::function<void(std::string_view)> set;
  };

  std::string program_;
  std::string purpose_;
  std::vector<Option> options_;
};

// What every benchmark program takes.
struct CommonOptions {
  std::int64_t rounds = 30;
  std::int64_t threads = 2;
  std::string results;
  bool dry_run = false;
};
void add_common(Arguments& arguments, CommonOptions& options);

// Reads the words and calls `measure`. Returns the exit code: 0 done, 1 the measurement failed or is void, 2 unusable
// arguments or surroundings; --help prints the usage. The only place of a benchmark program that catches and prints errors.
int run_benchmark(const Arguments& arguments, std::span<const std::string_view> words, const std::function<void()>& measure);

}  // namespace tessera::bench
