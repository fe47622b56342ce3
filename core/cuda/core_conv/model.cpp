#include "core/cuda/core_conv/model.h"

#include <algorithm>
#include <cmath>

#include "core/cuda/core_conv/tiles.h"
#include "core/cuda/runtime/chip.h"

namespace tessera::cuda::core_conv {
namespace {

// Fitted by least squares to times of an H100 in f32: TDC's 18 shapes with every tile and split, 1390 in all (`cuda_op_bench
// --part core`). The root mean square of log(predicted / measured) is 0.07, also on a shape left out of the fit. In cycles
// unless stated otherwise. The operands were not in the caches; operands that a network has just written arrive sooner.
constexpr double kCopyLatency = 1200;  // from a stage's first copy to the arrival of its last one
constexpr double kCopyBytes = 9.1;  // bytes per cycle of one processor while all processors copy
constexpr double kStage = 1090;  // of a stage besides the terms below: addresses, barriers, the first reads; nothing hides it
constexpr double kShare = 0.78;  // share of the units' peak that the products of a stage reach
// Fitted, with library_launch and library_share, to the times of cuDNN's fastest algorithm on the same shapes and of three
// convolutions with these cores (`--part tucker`). The residual is 0.14. On the f32 units the products of a small block take
// about as long as the step latency, so the times do not tell the two apart.
constexpr double kLibraryStepLatency = 350;  // least cycles of a step of k: a library's kernel waits for its copies
constexpr double kLibraryStep = 8;  // elements of k in a step, on the f32 units
constexpr double kLibraryStepBytes = 128;  // bytes of k in a step on tensor cores; not fitted
// Not fitted: their effect is too small to show in the times.
constexpr double kCopyInstructions = 14;  // addresses and bounds of one copy
constexpr double kReadWavefronts = 2;  // of a read of 16 bytes by each thread of a warp, half of them broadcast
constexpr double kMostBlocks = 32;  // resident on one processor

double occupancy(const BlockWork& block, const Limits& limits) {
  const double shared_of_block = static_cast<double>(block.shared) + static_cast<double>(kReservedShared);
  const double shared = static_cast<double>(limits.shared_per_processor) / shared_of_block;
  const double threads = static_cast<double>(limits.threads_per_processor) / block.threads;
  const double registers = static_cast<double>(kRegisters) / (block.threads * block.registers);
  return std::max(1.0, std::floor(std::min({shared, threads, registers, kMostBlocks})));
}

// Cycles of `resident` blocks that share one processor, while each processor has `in_flight` blocks on average. Nothing hides the
// copies of the first stage. Copies for each later stage run while the stage before is multiplied.
double cycles_of(const BlockWork& block, double resident, double in_flight, double stages, const Chip& chip) {
  const double warps = std::ceil(block.threads / 32.0);
  const double of_scheduler = std::ceil(resident * warps / 4);
  const double others = block.reads + block.copies * kCopyInstructions;
  const double issue = of_scheduler * (block.products * 128 / chip.lanes / kShare + others);
  const double banks = resident * (warps * block.reads * kReadWavefronts + block.bytes / chip.shared);
  const double multiply = std::max(issue, banks) + kStage;
  const double copy = kCopyLatency + in_flight * block.bytes / kCopyBytes;
  return copy + (stages - 1) * std::max(multiply, copy) + multiply + block.tail;
}

double traffic_seconds(double bytes, const Limits& limits, const Chip& chip) {
  return bytes / (bytes > static_cast<double>(limits.l2) / 2 ? chip.memory : chip.cache);
}

// Blocks are dealt to all processors. A block that finds no room waits for a whole wave. A lone wave ends with its longest block.
double waves_seconds(const BlockWork& block, double blocks, const Limits& limits, const Chip& chip) {
  const double room = occupancy(block, limits);
  const double of_processor = blocks / limits.processors;
  const double busiest = std::ceil(of_processor);
  const double waves = std::floor(busiest / room);
  const double rest = busiest - waves * room;
  const double stages = busiest > room ? block.stages : block.most_stages;
  double cycles = waves * cycles_of(block, room, std::min(room, of_processor), stages, chip);
  if (rest > 0) cycles += cycles_of(block, rest, of_processor - waves * room, stages, chip);
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
  return chip.next_launch + traffic_seconds((2 * splits + 1) * numel * sizeof(float), limits, chip);
}

double compulsory_elements(const Conv2dGeometry& g) {
  return static_cast<double>(g.n * g.h * g.w * g.in + g.n * g.oh * g.ow * g.out + g.out * g.kh * g.kw * g.in);
}

LibraryProduct library_product(Conv2dPass pass, const Conv2dGeometry& g, double element_bytes, bool tensor_cores) {
  const auto pixels = static_cast<double>(g.n * g.oh * g.ow), taps = static_cast<double>(g.kh * g.kw);
  const auto in = static_cast<double>(g.in), out = static_cast<double>(g.out);
  LibraryProduct product{.m = pixels,
                         .n = out,
                         .k = taps * in,
                         .bytes = element_bytes * compulsory_elements(g),
                         .most_parts = 1,
                         .element_bytes = element_bytes,
                         .tensor_cores = tensor_cores};
  if (pass == Conv2dPass::backward_input) {
    product.n = in;
    product.k = taps * out;
  } else if (pass == Conv2dPass::backward_weight) {
    product.m = out;
    product.n = taps * in;
    product.k = pixels;
    product.most_parts = 64;
  }
  return product;
}

double seconds_of_library(const LibraryProduct& product, const Limits& limits) {
  const auto [m, n, k, bytes, most_parts, element_bytes, tensor_cores] = product;
  const Chip chip = chip_of(limits);
  const double rate = !tensor_cores ? chip.lanes : element_bytes == 4 ? chip.library_tensor / 2 : chip.library_tensor;
  const double step = tensor_cores ? kLibraryStepBytes / element_bytes : kLibraryStep;
  double best = 0;
  for (const LibraryTile& tile : kLibraryTiles) {
    // Large blocks read fewer bytes for each product.
    const double share = chip.library_share * std::sqrt(tile.m * tile.n / (128 * 128));
    for (double parts = 1; parts <= most_parts; parts *= 2) {
      const double steps = std::ceil(std::ceil(k / parts) / step);
      const double blocks = std::ceil(m / tile.m) * std::ceil(n / tile.n) * parts;
      const double busiest = std::ceil(blocks / limits.processors);
      const double products = busiest * steps * step * tile.m * tile.n / rate / share;
      const double cycles = std::max(products, steps * kLibraryStepLatency);
      double seconds = chip.library_launch + std::max(cycles / chip.clock, traffic_seconds(bytes, limits, chip));
      if (parts > 1) seconds += seconds_of_add_splits(m * n, parts, limits);
      if (best == 0 || seconds < best) best = seconds;
    }
  }
  return best;
}

}  // namespace tessera::cuda::core_conv
