#include "core/cuda/core_conv/model.h"

#include <algorithm>
#include <cmath>

#include "core/cuda/core_conv/tiles.h"
#include "core/cuda/runtime/chip.h"

namespace tessera::cuda::core_conv {
namespace {

// Guesses, as those of chip.h; in cycles unless said otherwise.
constexpr double kFirstCopy = 900;  // until the first stage is there
constexpr double kCopyLatency = 550;  // of a later one, hidden behind what is multiplied meanwhile
constexpr double kReadLatency = 32;  // of shared memory
constexpr double kBarrier = 40;
constexpr double kStore = 500;  // until a block's results are out
constexpr double kCopyInstructions = 14;  // addresses and bounds of one copy
constexpr double kIssue = 0.75;  // of issue slots that a good kernel fills
constexpr double kReadWavefronts = 2;  // that 16 bytes for each thread of a warp take, half of them broadcast
constexpr double kMostBlocks = 32;  // of a processor
constexpr double kLibraryStep = 8;  // of k, behind which a library's kernel waits for its copies
constexpr double kLibraryStepLatency = 120;

double occupancy(const BlockWork& block, const Limits& limits) {
  const double shared_of_block = static_cast<double>(block.shared) + static_cast<double>(kReservedShared);
  const double shared = static_cast<double>(limits.shared_per_processor) / shared_of_block;
  const double threads = static_cast<double>(limits.threads_per_processor) / block.threads;
  const double registers = static_cast<double>(kRegisters) / (block.threads * block.registers);
  return std::max(1.0, std::floor(std::min({shared, threads, registers, kMostBlocks})));
}

// Of `resident` blocks side by side on one processor.
double cycles_of(const BlockWork& block, double resident, const Chip& chip) {
  const double warps = std::ceil(block.threads / 32.0);
  const double of_scheduler = std::ceil(resident * warps / 4);
  const double others = block.reads + block.copies * kCopyInstructions;
  const double issue = of_scheduler * (block.products * 128 / chip.lanes + others) / kIssue;
  const double banks = resident * (warps * block.reads * kReadWavefronts + block.bytes / chip.shared);
  const double cache = resident * block.bytes / chip.l2;
  const double alone = block.products * 128 / chip.lanes + others + block.dependent_reads * kReadLatency;
  const double stage = std::max({issue, banks, cache, alone, kCopyLatency}) + kBarrier;
  return kFirstCopy + block.stages * stage + block.tail + kStore;
}

double traffic_seconds(double bytes, const Limits& limits, const Chip& chip) {
  return bytes / (bytes > static_cast<double>(limits.l2) / 2 ? chip.memory : chip.cache);
}

// Blocks are dealt to all processors; those that find no room wait for a whole wave.
double waves_seconds(const BlockWork& block, double blocks, const Limits& limits, const Chip& chip) {
  const double room = occupancy(block, limits);
  const double busiest = std::ceil(blocks / limits.processors);
  const double waves = std::floor(busiest / room);
  const double rest = busiest - waves * room;
  double cycles = waves * cycles_of(block, room, chip);
  if (rest > 0) cycles += cycles_of(block, rest, chip);
  return cycles / chip.clock;
}

struct LibraryTile {
  double m, n;
};
constexpr LibraryTile kLibraryTiles[] = {
    {.m = 128, .n = 128}, {.m = 128, .n = 64}, {.m = 64, .n = 64}, {.m = 128, .n = 32}, {.m = 64, .n = 32}};

}  // namespace

double seconds_of(const KernelWork& work, const Limits& limits) {
  const Chip chip = chip_of(limits);
  const double waves = waves_seconds(work.block, work.blocks, limits, chip);
  return chip.launch + std::max(waves, traffic_seconds(work.bytes, limits, chip));
}

double seconds_of_add_splits(double numel, double splits, const Limits& limits) {
  const Chip chip = chip_of(limits);
  const double latency = (kFirstCopy + kStore + splits * kBarrier) / chip.clock;
  return chip.next_launch + latency + traffic_seconds((splits + 1) * numel * sizeof(float), limits, chip);
}

double seconds_of_library(double m, double n, double k, double bytes, const Limits& limits) {
  const Chip chip = chip_of(limits);
  double best = 0;
  for (const LibraryTile& tile : kLibraryTiles) {
    for (double parts = 1; parts <= 16; parts *= 2) {
      const double steps = std::ceil(std::ceil(k / parts) / kLibraryStep);
      const double blocks = std::ceil(m / tile.m) * std::ceil(n / tile.n) * parts;
      const double busiest = std::ceil(blocks / limits.processors);
      const double products = busiest * steps * kLibraryStep * tile.m * tile.n / chip.lanes / chip.library_share;
      const double cycles = kFirstCopy + std::max(products, steps * kLibraryStepLatency) + kStore;
      double seconds = chip.library_launch + std::max(cycles / chip.clock, traffic_seconds(bytes, limits, chip));
      if (parts > 1) seconds += seconds_of_add_splits(m * n, parts, limits);
      if (best == 0 || seconds < best) best = seconds;
    }
  }
  return best;
}

}  // namespace tessera::cuda::core_conv
