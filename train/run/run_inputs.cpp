#include "train/run/run_inputs.h"

namespace tessera {
namespace {

std::uint64_t seed_of(const ExperimentConfig& config) { return static_cast<std::uint64_t>(config.seed); }

}  // namespace

InitialModel initial_model(Vfs& vfs, const ExperimentConfig& config, const DataSplits& data) {
  return initial_model(vfs, config.model, sample_shape(data), seed_of(config));
}

RunInputs load_inputs(Vfs& vfs, const ExperimentConfig& config) {
  DataSplits data = load_data(config.data, seed_of(config));
  InitialModel initial = initial_model(vfs, config, data);
  return {std::move(data), std::move(initial)};
}

}  // namespace tessera
