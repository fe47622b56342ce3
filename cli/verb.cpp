#include "cli/verb.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <utility>

#include "cli/ranks.h"
#include "core/config/suggest.h"
#include "core/support/error.h"

namespace tessera::cli {

Argument& Argument::required() {
  option_->required();
  return *this;
}

Argument& Argument::one_of(const std::vector<std::string_view>& texts) {
  option_->check(CLI::IsMember(std::vector<std::string>(texts.begin(), texts.end())));
  return *this;
}

Argument& Argument::between(std::int64_t least, std::int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Argument& Argument::placeholder(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Argument& Argument::hidden() {
  option_->group("");
  return *this;
}

Argument& Argument::value_optional(const std::string& text) {
  option_->expected(0, 1)->default_str(text);
  return *this;
}

Verb Verb::add(const std::string& name, const std::string& help) const {
  app_->require_subcommand(1);
  return {app_->add_subcommand(name, help), chosen_};
}

Argument Verb::argument(const std::string& name, std::string& value, const std::string& help) const {
  return Argument(app_->add_option(name, value, help)->capture_default_str());
}

Argument Verb::argument(const std::string& name, std::int64_t& value, const std::string& help) const {
  return Argument(app_->add_option(name, value, help)->capture_default_str());
}

Argument Verb::argument(const std::string& name, double& value, const std::string& help) const {
  return Argument(app_->add_option(name, value, help)->capture_default_str());
}

Argument Verb::argument(const std::string& name, std::vector<double>& values, const std::string& help) const {
  return Argument(app_->add_option(name, values, help)->delimiter(',')->capture_default_str());
}

Argument Verb::argument(const std::string& name, std::vector<std::string>& values, const std::string& help) const {
  return Argument(app_->add_option(name, values, help));
}

void Verb::flag(const std::string& name, bool& value, const std::string& help) const { app_->add_flag(name, value, help); }

void Verb::footer(const std::string& text) const { app_->footer(text); }

void Verb::runs(Run run) const {
  runs_in_ranks([command = this->command(), run = std::move(run)] {
    TESSERA_CHECK(ranks().size() == 1, ConfigError, command, ": one process does this, and mpirun has started ", ranks().size(),
                  "; only train and resume run in several");
    return run();
  });
}

void Verb::runs_in_ranks(Run run) const {
  app_->callback([chosen = chosen_, run = std::move(run)] { *chosen = run; });
}

std::string Verb::command() const {
  std::string path = app_->get_name();
  for (const CLI::App* parent = app_->get_parent(); parent != nullptr; parent = parent->get_parent()) {
    path = str(parent->get_name(), ' ', path);
  }
  return path;
}

Program::Program(const std::string& name, const std::string& help, const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->set_version_flag("--version", version);
}

Program::~Program() = default;

// What no word and a first word that is no verb are answered with; empty for a verb and an option.
std::string Program::unknown_verb(int argc, char** argv) const {
  if (argc < 2) return str(app_->get_name(), ": a verb is needed (", app_->get_name(), " --help lists the verbs)");
  if (argv[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const CLI::App* verb : app_->get_subcommands([](const CLI::App*) { return true; })) names.push_back(verb->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (std::ranges::find(names, argv[1]) != names.end()) return "";
  std::string text = str(app_->get_name(), ": there is no verb '", argv[1], '\'');
  const std::vector<std::string> nearest = nearest_names(argv[1], known, 1);
  if (!nearest.empty()) text += str("; did you mean '", nearest.front(), "'?");
  return str(text, " (", app_->get_name(), " --help lists the verbs)");
}

Run Program::parse(int argc, char** argv) {
  if (const std::string unknown = unknown_verb(argc, argv); !unknown.empty()) {
    return [unknown]() -> int { throw ConfigError(unknown); };
  }
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return [this, error] {
      if (error.get_exit_code() != 0) leave_it_to_rank_0(kBadInput, error.what());
      if (ranks().rank() > 0) return kDone;  // rank 0 prints the help
      return app_->exit(error) == 0 ? kDone : kBadInput;
    };
  }
  return chosen_;
}

}  // namespace tessera::cli
