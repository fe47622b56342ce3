#include "cli/file_verb.h"

#include "core/support/error.h"

namespace tessera::cli {

void add_file_arguments(CLI::App& verb, FileArguments& arguments) {
  verb.add_option("config", arguments.config, "experiment file")->required();
  verb.add_option("overrides", arguments.overrides, "key=value, as for train");
  verb.add_flag("--json", arguments.json, "for another program to read; docs/json.md lists the keys");
}

void add_file_verb(CLI::App& app, Run& run, const char* name, const char* help, int (*verb)(const FileArguments&)) {
  CLI::App* added = app.add_subcommand(name, help);
  auto arguments = std::make_shared<FileArguments>();
  add_file_arguments(*added, *arguments);
  const std::string group = app.get_parent() == nullptr ? std::string() : app.get_name() + " ";
  added->footer(str("Example: tessera ", group, name, " configs/quickstart.yaml"));
  added->callback([arguments, verb, &run] { run = [arguments, verb] { return verb(*arguments); }; });
}

}  // namespace tessera::cli
