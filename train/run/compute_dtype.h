// What a run computes activations in.
#pragma once

#include "core/device/precision.h"
#include "train/experiment.h"

namespace tessera {

// From the precision and the device. Throws ConfigError as compute_dtype() and resolve_device() do.
inline DType compute_dtype_of(const ExperimentConfig& config) {
  return compute_dtype(config.precision, resolve_device(config.device));
}

// Whether products of f32 may round their operands: for a Tf32Products that lives as long as the run computes.
inline bool takes_tf32(const ExperimentConfig& config) { return config.precision == "tf32"; }

}  // namespace tessera
