// Which elements a dropout keeps: the same on both devices.
#pragma once

#include <cstdint>

#include "core/support/host_device.h"
#include "core/device/step_state.h"

namespace tessera {

// Words whose upper 24 bits are below this are dropped.
inline std::uint32_t dropout_threshold(double p) { return static_cast<std::uint32_t>(p * 0x1p24 + 0.5); }

// The random number's step: micro-batches of one step draw different masks.
TESSERA_HD inline std::uint64_t dropout_step(const StepStateData& state) {
  return (static_cast<std::uint64_t>(state.step) << 20) + static_cast<std::uint64_t>(state.micro_step);
}

}  // namespace tessera
