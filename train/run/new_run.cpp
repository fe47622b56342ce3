#include "train/run/new_run.h"

#include <filesystem>
#include <ostream>
#include <utility>

namespace tessera {

Session new_run(Vfs& vfs, const Experiment& experiment, RunInputs inputs, const std::string& config_text, const std::string& runs,
                const SessionOptions& options) {
  const RunFolder folder = RunFolder::create(vfs, runs, experiment.config.name);
  if (options.out != nullptr) *options.out << "run folder: " << folder.path() << std::endl;
  try {
    return Session::start(vfs, experiment, std::move(inputs), config_text, folder, options);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(folder.path(), ignored);
    std::filesystem::remove(std::filesystem::path(folder.path()).parent_path(), ignored);  // only if it is empty
    throw;
  }
}

}  // namespace tessera
