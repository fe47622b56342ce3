// What the verbs that read an experiment file and train nothing have in common.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"
#include "train/experiment.h"

namespace tessera::cli {

struct FileArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

// Adds the experiment file, overrides and --json to a verb.
void add_file_arguments(Verb verb, FileArguments& arguments);

// Adds a verb that takes an experiment file, overrides and --json, and calls `run` with them.
void add_file_verb(Verb parent, const char* name, const char* help, int (*run)(const FileArguments&));

}  // namespace tessera::cli
