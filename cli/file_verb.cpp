#include "cli/file_verb.h"

#include "core/error.h"

namespace tessera::cli {

void add_file_verb(CLI::App& app, Run& run, const char* name, const char* help, int (*verb)(const FileArguments&)) {
  CLI::App* added = app.add_subcommand(name, help);
  auto arguments = std::make_shared<FileArguments>();
  added->add_option("config", arguments->config, "experiment file")->required();
  added->add_option("overrides", arguments->overrides, "key=value, as for train");
  added->add_flag("--json", arguments->json, "for another program to read; docs/json.md lists the keys");
  added->footer(str("Example: tessera ", name, " configs/quickstart.yaml"));
  added->callback([arguments, verb, &run] { run = [arguments, verb] { return verb(*arguments); }; });
}

}  // namespace tessera::cli
