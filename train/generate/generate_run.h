// Text from a run's network.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/vfs.h"
#include "train/generate/generator.h"
#include "train/run/run_folder.h"

namespace tessera {

struct GenerateRunOptions {
  GenerateOptions text;
  std::string at;  // a stage's end, a step, "best", or "" for the newest checkpoint
  std::vector<std::string> overrides;  // key=value of device, precision and threads.compute
};

// The tokenizer and the choices of the clock are those of the checkpoint; no data is read. Sets the threads of the process.
// Throws ConfigError on a run that does not learn to predict the next token, and as generate_text() does; IoError on a
// checkpoint that is damaged, when it was asked for by name.
Generated generate_from_run(Vfs& vfs, const RunFolder& run, const GenerateRunOptions& options, const StopRequest& stop,
                            const std::function<void(std::string_view)>& write);

}  // namespace tessera
