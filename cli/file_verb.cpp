#include "cli/file_verb.h"

#include <memory>

#include "core/support/error.h"

namespace tessera::cli {

void add_file_arguments(Verb verb, FileArguments& arguments) {
  verb.argument("config", arguments.config, "experiment file").required();
  verb.argument("overrides", arguments.overrides, "key=value, as for train");
  verb.flag("--json", arguments.json, "for another program to read; docs/json.md lists the keys");
}

void add_file_verb(Verb parent, const char* name, const char* help, int (*run)(const FileArguments&)) {
  const Verb verb = parent.add(name, help);
  auto arguments = std::make_shared<FileArguments>();
  add_file_arguments(verb, *arguments);
  verb.footer(str("Example: ", verb.command(), " configs/quickstart.yaml"));
  verb.runs([arguments, run] { return run(*arguments); });
}

}  // namespace tessera::cli
