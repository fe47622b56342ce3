// What the verbs that read an experiment file and train nothing have in common.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "train/experiment.h"

namespace tessera::cli {

struct FileArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

// Adds the experiment file, overrides and --json to a verb.
void add_file_arguments(CLI::App& verb, FileArguments& arguments);

// Adds a verb that takes an experiment file, overrides and --json, and runs `verb` with them.
void add_file_verb(CLI::App& app, Run& run, const char* name, const char* help, int (*verb)(const FileArguments&));

}  // namespace tessera::cli
