#include "cli/running.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "cli/ranks.h"
#include "core/support/error.h"
#include "train/run/rank_follower.h"

namespace tessera::cli {
namespace {

void on_signal(int number) {
  static volatile std::sig_atomic_t interrupted = 0;
  if (number == SIGINT && interrupted != 0) _exit(128 + SIGINT);
  if (number == SIGINT) interrupted = 1;
  StopRequest::signal(number);
}

// "3h50m" -> seconds. Units h, m, s in this order, each at most once.
std::int64_t parse_time(const std::string& text) {
  std::int64_t total = 0;
  std::int64_t number = -1;
  std::size_t unit = 0;
  constexpr std::string_view units = "hms";
  constexpr std::int64_t seconds[] = {3600, 60, 1};
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
      if (number > 100000000) break;
      continue;
    }
    const std::size_t found = units.find(c, unit);
    if (number < 0 || found == std::string_view::npos) number = -2;
    if (number < 0) break;
    total += number * seconds[found];
    unit = found + 1;
    number = -1;
  }
  TESSERA_CHECK(number == -1 && total > 0, ConfigError, "--time-limit: '", text, "' is not a time; write 3h50m, 45m or 90s");
  return total;
}

constexpr const char* kProfileSteps = "20";

std::int64_t parse_profile_steps(const std::string& text) {
  constexpr std::size_t kDigits = 5;
  const bool number = !text.empty() && text.size() <= kDigits && text.find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t steps = number ? std::stoll(text) : 0;
  TESSERA_CHECK(steps > 0, ConfigError, "--profile: '", text,
                "' is not a number of steps; write 1 to 99999, or --profile last for ", kProfileSteps);
  return steps;
}

}  // namespace

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaction(number, &action, nullptr);
}

StopRequest stop_after(const std::string& time_limit) {
  StopRequest stop;
  if (!time_limit.empty()) stop.set_time_limit(std::chrono::steady_clock::now() + std::chrono::seconds(parse_time(time_limit)));
  return stop;
}

void add_profile_option(Verb verb, std::string& text) {
  verb.argument("--profile", text, "tell where the time of this many training steps goes (20), in profile.md and profile.json")
      .placeholder("STEPS")
      .value_optional(kProfileSteps);
}

SessionOptions session_options(const StopRequest& stop, const std::string& profile) {
  SessionOptions options;
  if (!profile.empty()) options.profile_steps = parse_profile_steps(profile);
  options.stop = stop;
  options.ranks = &ranks();
  options.out = &std::cout;
  options.terminal = isatty(STDOUT_FILENO) != 0;
  return options;
}

int follow(const StopRequest& stop) { return follow_rank_0(ranks(), stop, rank_log()) == RunOutcome::stopped ? kStopped : kDone; }

int finish(Session session) {
  const std::string run_path = session.folder().path();
  if (session.run() == RunOutcome::stopped) {
    std::cout << "stopped; everything is saved. Go on with:\n  tessera resume " << run_path << '\n';
    return kStopped;
  }
  std::cout << "done: " << run_path << "\nnext: tessera table " << run_path << '\n';
  return kDone;
}

std::string runs_folder(const std::string& option) {
  if (!option.empty()) return option;
  const char* environment = std::getenv("TESSERA_RUNS");
  return environment != nullptr && *environment != '\0' ? environment : "runs";
}

}  // namespace tessera::cli
