#include "core/cuda/runtime/chip.h"

namespace tessera::cuda {
namespace {

double known(int value, int otherwise) { return value > 0 ? value : otherwise; }

}  // namespace

Chip chip_of(const Limits& limits) {
  Chip chip;
  chip.clock = 1e3 * known(limits.clock, 1'410'000);
  chip.memory = 2 * 1e3 * known(limits.memory_clock, 1'215'000) * known(limits.memory_bits, 5120) / 8;  // two transfers per cycle
  chip.cache = chip.l2 * chip.clock * limits.processors;
  if (limits.capability <= 80) chip.lanes = 64;
  if (limits.capability > 80 && limits.capability < 90) chip.tensor = 512;  // sm_86 and sm_89, the desktop chips
  chip.library_tensor = limits.capability >= 90 ? 2 * chip.tensor : chip.tensor;
  return chip;
}

}  // namespace tessera::cuda
