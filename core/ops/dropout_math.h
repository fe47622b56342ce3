// Which elements a dropout keeps: the same on both devices.
#pragma once

#include <cstdint>

#include "core/device/step_state.h"
#include "core/support/host_device.h"

namespace tessera {

inline std::uint32_t dropout_threshold(double p) { return static_cast<std::uint32_t>(p * 0x1p24 + 0.5); }

// Whether dropout keeps the element that draws this random word. Its upper 24 bits decide.
TESSERA_HD inline bool is_kept(std::uint32_t word, std::uint32_t threshold) { return word >> 8 >= threshold; }

// The random number's step: micro-batches of one step draw different masks.
TESSERA_HD inline std::uint64_t dropout_step(const StepStateData& state) {
  return (static_cast<std::uint64_t>(state.step) << 20) + static_cast<std::uint64_t>(state.micro_step);
}

}  // namespace tessera
