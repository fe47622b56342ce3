#include "bench/arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/text.h"

namespace tessera::bench {
namespace {

constexpr int kDone = 0;
constexpr int kVoid = 1;
constexpr int kUnusable = 2;
std::int64_t warnings = 0;  // printed so far
constexpr std::int64_t kMostThreads = 1024;  // the limit of an experiment's threads.compute, too

// Each side has kernels that only some of these variables limit.
void check_instruction_set_is_free() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "TESSERA_ISA"}) {
    const char* const value = std::getenv(name);
    const bool free = value == nullptr || *value == '\0';
    TESSERA_CHECK(free, ConfigError, name, " is '", value, "': under a limited instruction set a comparison is void; unset it");
  }
}

// A path of one machine means nothing on another one, so only the file's name is kept.
std::string without_folders(std::string_view word) {
  return word.starts_with('/') ? std::filesystem::path(word).filename().string() : std::string(word);
}

}  // namespace

Arguments& Arguments::count(std::string name, std::int64_t& target, std::string help, std::int64_t most) {
  const std::string shown = target > 0 ? str(help, " (", target, ")") : help;
  const auto set = [program = program_, name, &target, most](std::string_view word) {
    std::int64_t number = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), number);
    const bool whole = failure == std::errc() && end == word.data() + word.size();
    TESSERA_CHECK(whole && number >= 1 && number <= most, ConfigError, program, ": ", name, " is '", word,
                  "'; needs a whole number from 1 to ", most);
    target = number;
  };
  options_.push_back({std::move(name), "N", shown, set});
  return *this;
}

Arguments& Arguments::text(std::string name, std::string& target, std::string help) {
  options_.push_back({std::move(name), "TEXT", std::move(help), [&target](std::string_view word) { target = word; }});
  return *this;
}

Arguments& Arguments::flag(std::string name, bool& target, std::string help) {
  options_.push_back({std::move(name), "", std::move(help), [&target](std::string_view) { target = true; }});
  return *this;
}

Arguments& Arguments::command(std::string& target) {
  command_ = &target;
  return *this;
}

std::string Arguments::usage() const {
  std::vector<std::string> left;
  std::size_t width = 0;
  for (const Option& option : options_) {
    left.push_back(option.value.empty() ? option.name : str(option.name, " ", option.value));
    width = std::max(width, left.back().size());
  }
  std::string text = str(program_, ": ", purpose_, "\n");
  for (std::size_t i = 0; i < options_.size(); ++i) {
    text += str("  ", left[i], std::string(width + 2 - left[i].size(), ' '), options_[i].help, "\n");
  }
  return text;
}

void Arguments::read(std::span<const std::string_view> words) {
  if (command_ != nullptr) {
    *command_ = program_;
    for (const std::string_view word : words) *command_ += str(' ', without_folders(word));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto option = std::ranges::find(options_, words[i], &Option::name);
    TESSERA_CHECK(option != options_.end(), ConfigError, program_, ": unknown option '", words[i], "'; --help lists them");
    option->given = true;
    if (option->value.empty()) {
      option->set({});
      continue;
    }
    TESSERA_CHECK(i + 1 < words.size(), ConfigError, program_, ": ", words[i], " needs a value");
    option->set(words[++i]);
  }
}

void Arguments::refuse(std::span<const std::string_view> names, const std::string& why) const {
  for (const std::string_view name : names) {
    const auto option = std::ranges::find(options_, name, &Option::name);
    TESSERA_CHECK(option != options_.end(), InternalError, program_, " has no option ", name);
    TESSERA_CHECK(!option->given, ConfigError, program_, ": ", name, " has no effect ", why, "; leave it out");
  }
}

void add_common(Arguments& arguments, CommonOptions& options) {
  arguments.count("--rounds", options.rounds, "turns of each side")
      .count("--threads", options.threads, "compute threads of both sides", kMostThreads)
      .text("--results", options.results, "file that results are appended to")
      .flag("--dry-run", options.dry_run, "print results instead of appending them")
      .command(options.command);
}

void add_torch(Arguments& arguments, TorchOptions& options, const std::string& needed) {
  const std::string otherwise = options.python.empty() ? "; without it its rows are left out" : str(" (", options.python, ")");
  arguments.text("--python", options.python, str("interpreter that has ", needed, otherwise))
      .text("--script", options.script, "the Python side")
      .count("--sweep-" + options.unit, options.sweep_runs,
             str("least ", options.unit, " of each of torch's ways before the fastest are timed"));
}

CommonOptions destination(CommonOptions options, const std::string& only, const std::string& official) {
  if (!options.results.empty()) return options;
  options.results = official;
  options.dry_run = options.dry_run || !only.empty();
  return options;
}

std::int64_t warnings_printed() { return warnings; }

int run_benchmark(Arguments& arguments, std::span<const std::string_view> words, const std::function<void()>& measure) {
  if (std::ranges::find(words, "--help") != words.end()) {
    std::cout << arguments.usage();
    return kDone;
  }
  try {
    arguments.read(words);
    check_instruction_set_is_free();
    set_log_sink([program = std::string(arguments.program())](LogLevel level, std::string_view message) {
      if (level < LogLevel::warning) return;
      ++warnings;
      std::cerr << program << ": " << message << '\n';
    });
    measure();
  } catch (const ConfigError& error) {
    std::cerr << error.what() << '\n';
    return kUnusable;
  } catch (const std::exception& error) {
    std::cerr << arguments.program() << ": " << error.what() << '\n';
    return kVoid;
  }
  return kDone;
}

}  // namespace tessera::bench
