// A fresh run in a new folder.
#pragma once

#include <string>

#include "train/run/session.h"

namespace tessera {

// Makes runs/<name>/<n>/ and says where. A run that cannot begin leaves no folder behind. `config_text` is the experiment as the
// user gave it.
Session new_run(Vfs& vfs, const Experiment& experiment, RunInputs inputs, const std::string& config_text, const std::string& runs,
                const SessionOptions& options);

}  // namespace tessera
