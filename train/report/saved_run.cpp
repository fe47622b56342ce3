#include "train/report/saved_run.h"

#include <array>

#include "core/support/error.h"
#include "train/run/environment.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 6> kAllowed{"data.root",      "data.batch", "threads.compute",
                                                   "threads.loader", "device",     "precision"};

DataSplits data_of(const ExperimentConfig& config, const Checkpoint& checkpoint, std::string_view verb) {
  try {
    DataSplits data = load_data(config.data, static_cast<std::uint64_t>(config.seed));
    const std::string content = data.train.dataset->fingerprint();
    const std::string& before = checkpoint.manifest.at("data").as_string();
    TESSERA_CHECK(before == content, ConfigError, verb,
                  ": the training data, which gives statistics and names, is not the run's: "
                  "fingerprint ",
                  content, ", ", checkpoint.folder.string(), " has ", before);
    return data;
  } catch (const IoError& error) {  // missing files are bad input
    throw ConfigError(str("data: ", error.what()));
  }
}

}  // namespace

SavedRun open_saved_run(Vfs& vfs, const RunFolder& run, const std::string& at, std::span<const std::string> overrides,
                        std::string_view verb) {
  SavedRun saved;
  saved.config = settings_of(run, overrides, kAllowed, verb);
  const Device device = resolve_device(saved.config.device);
  saved.checkpoint = load_at(vfs, run, at, verb);
  saved.data = data_of(saved.config, saved.checkpoint, verb);
  set_compute_threads(saved.config.threads.compute);
  saved.model = evaluation_model(saved.checkpoint);
  move_to(*saved.model, device);
  return saved;
}

Subset split_of(const DataSplits& data, const std::string& name, std::string_view verb) {
  TESSERA_CHECK(name == "test" || name == "val" || name == "train", ConfigError, verb, ": no split '", name,
                "'; there are test, val, train");
  const Subset& split = name == "test" ? data.test : name == "val" ? data.val : data.train;
  TESSERA_CHECK(split.size() > 0, ConfigError, verb, ": the ", name,
                " split is empty; the run's data block leaves it no samples");
  return without_left_out(split);
}

}  // namespace tessera
