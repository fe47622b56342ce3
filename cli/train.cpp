#include <algorithm>
#include <iostream>
#include <memory>
#include <span>

#include "cli/ranks.h"
#include "cli/running.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/plan/check.h"
#include "train/run/decisions_file.h"
#include "train/run/new_run.h"

namespace tessera::cli {
namespace {

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string seeds;
  std::string runs;
  std::string time_limit;
  std::string decisions;
  std::string profile;
};

// "1,2,3" -> {"1", "2", "3"}.
std::vector<std::string> parse_seeds(const std::string& text) {
  std::vector<std::string> seeds;
  for (const std::string& seed : split(text, ',')) {
    TESSERA_CHECK(!seed.empty() && seed.size() <= 18 && seed.find_first_not_of("0123456789") == std::string::npos, ConfigError,
                  "--seeds: '", seed, "' is not a seed; write whole numbers with commas between, e.g. 1,2,3");
    TESSERA_CHECK(std::find(seeds.begin(), seeds.end(), seed) == seeds.end(), ConfigError, "--seeds: ", seed, " is there twice");
    seeds.push_back(seed);
  }
  return seeds;
}

int train_one(const TrainArguments& arguments, const std::vector<std::string>& overrides, const StopRequest& stop) {
  SessionOptions options = session_options(stop, arguments.profile);
  const Experiment experiment = load_experiment(arguments.config, overrides);
  if (!arguments.decisions.empty()) options.decisions = read_decisions(real_vfs(), arguments.decisions);
  RunInputs inputs = check_experiment(experiment, &options.decisions);
  install_stop_signals();  // earlier there is nothing to save, and a signal ends the process at once
  const std::string text = real_vfs().read_file(arguments.config);
  return finish(new_run(real_vfs(), experiment, std::move(inputs), text, runs_folder(arguments.runs), options));
}

void print_missing(const TrainArguments& arguments, std::span<const std::string> seeds) {
  std::string list = seeds[0];
  for (const std::string& seed : seeds.subspan(1)) list += ',' + seed;
  std::string command = "tessera train " + shell_word(arguments.config);
  for (const std::string& entry : arguments.overrides) command += ' ' + shell_word(entry);
  command += " --seeds " + list;
  if (!arguments.runs.empty()) command += " --runs " + shell_word(arguments.runs);
  if (!arguments.decisions.empty()) command += " --decisions " + shell_word(arguments.decisions);
  if (!arguments.profile.empty()) command += " --profile " + arguments.profile;
  if (!arguments.time_limit.empty()) command += " --time-limit " + arguments.time_limit;
  std::cout << "not started: seed " << list << ". Run with:\n  " << command << '\n';
}

int train(const TrainArguments& arguments) {
  TESSERA_CHECK(arguments.seeds.empty() || ranks().size() == 1, ConfigError,
                "--seeds: several processes train one seed; start a command for each");
  const StopRequest stop = stop_after(arguments.time_limit);  // one limit for the command, however many seeds it runs
  if (ranks().size() > 1) install_stop_signals();  // a rank that a signal ends takes the others with it
  if (ranks().rank() > 0) return follow(stop);
  if (arguments.seeds.empty()) return train_one(arguments, arguments.overrides, stop);
  const std::vector<std::string> seeds = parse_seeds(arguments.seeds);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (i > 0 && stop.requested()) {
      print_missing(arguments, std::span(seeds).subspan(i));
      return kStopped;
    }
    std::vector<std::string> overrides = arguments.overrides;
    overrides.push_back("seed=" + seeds[i]);
    const int code = train_one(arguments, overrides, stop);
    if (code == kStopped && i + 1 < seeds.size()) print_missing(arguments, std::span(seeds).subspan(i + 1));
    if (code != kDone) return code;
  }
  return kDone;
}

}  // namespace

void add_train(Verb program) {
  const Verb verb = program.add("train", "Run an experiment file in a new run folder");
  auto arguments = std::make_shared<TrainArguments>();
  verb.argument("config", arguments->config, "experiment file").required();
  verb.argument("overrides", arguments->overrides, "key=value, stages[0].train=2e, ~key to drop one");
  verb.argument("--seeds", arguments->seeds, "one run per seed, e.g. 1,2,3").placeholder("LIST");
  verb.argument("--runs", arguments->runs, "folder of the run folders (default: $TESSERA_RUNS or ./runs)");
  verb.argument("--time-limit", arguments->time_limit, "stop and save after this time, e.g. 3h50m");
  verb.argument("--decisions", arguments->decisions, "decisions.json of another run: take its choices, measure only others");
  add_profile_option(verb, arguments->profile);
  verb.footer("Example: tessera train configs/quickstart.yaml optimizer.lr=0.05");
  verb.runs_in_ranks([arguments] { return train(*arguments); });
}

}  // namespace tessera::cli
