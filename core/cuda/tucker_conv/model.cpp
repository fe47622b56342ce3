// Predicted times of a fused Tucker-2 convolution and of the library's three.
#include <algorithm>
#include <cmath>

#include "core/cuda/runtime/chip.h"
#include "core/cuda/tucker_conv/plan.h"
#include "core/support/rounding.h"

namespace tessera::cuda {
namespace {

// Guesses, as those of chip.h and the shares in inner_share().
constexpr double kSliceLatency = 700;    // cycles from asking for a slice to having it, the barriers included
constexpr double kCorrelateShare = 0.4;  // of the units' peak in correlate.h, whose threads read ten words for 36 products

double element_bytes(TuckerMath math) { return math == TuckerMath::f32 || math == TuckerMath::tf32 ? 4 : 2; }

// Multiply-adds of one processor in a cycle.
double products_of(TuckerMath math, const Chip& chip) {
  if (math == TuckerMath::f32) return chip.lanes;
  return math == TuckerMath::tf32 ? chip.tensor / 2 : chip.tensor;
}

// Share of the peak that a block's inner loop is taken to reach: `rows` x 4 sums of a thread read rows + 4 operands from shared
// memory.
double inner_share(const BlockShape& block) {
  if (block.tensor_cores) return block.rows * block.columns / (64.0 * 64.0) * 0.12 + 0.08;
  const double rows = block.rows * block.columns / 1024.0;
  return 0.85 * 4 * rows / (4 * rows + rows + 4);
}

// What one block of a class does: multiply-adds, staged slices, bytes through the cache.
struct Work {
  double products = 0, slices = 0, bytes = 0;
  Work& operator+=(const Work& other) {
    products += other.products;
    slices += other.slices;
    bytes += other.bytes;
    return *this;
  }
};

// rows x columns sums over `depth` channels, `taps` times; the left operand is staged too where it has `left_bytes` an element.
Work product(const BlockShape& block, int rows, int columns, int depth, int taps, double left_bytes) {
  const int row_blocks = ceil_div(rows, block.rows);
  const int column_blocks = ceil_div(columns, block.columns);
  const double passes = static_cast<double>(row_blocks) * column_blocks;
  const double summed = static_cast<double>(taps) * round_up(depth, block.element_bytes == 2 ? 16 : 8);
  Work work;
  work.products = passes * block.rows * block.columns * summed;
  work.slices = passes * taps * ceil_div(depth, kSlice);
  work.bytes = passes * summed * (4.0 * block.columns + left_bytes * block.rows);
  return work;
}

Work block_work(const ChainShape& shape, const BlockShape& block, const PassAxis& rows, const PassAxis& columns) {
  const int window = window_of(rows, shape.tile_h) * window_of(columns, shape.tile_w);
  const int outputs = shape.tile_h * shape.tile_w;
  Work work;
  if (shape.has_in) work += product(block, window, shape.narrow_in, shape.wide_in, 1, block.element_bytes);
  else work.bytes += static_cast<double>(window) * shape.narrow_in * block.element_bytes;
  work += product(block, outputs, shape.narrow_out, shape.narrow_in, rows.taps * columns.taps, 0);
  if (shape.has_out) work += product(block, outputs, shape.wide_out, shape.narrow_out, 1, 0);
  work.bytes += static_cast<double>(outputs) * shape.wide_out * block.element_bytes;
  return work;
}

int resident_blocks(const BlockShape& block, int shared, const Limits& limits) {
  const auto by_shared = static_cast<int>(limits.shared_per_processor / (static_cast<std::size_t>(shared) + kReservedShared));
  return std::max(1, std::min({by_shared, limits.threads_per_processor / kBlockThreads, resident_by_registers(block)}));
}

// One convolution of the library: the best of its usual tiles, and no faster than memory.
Estimate convolution(double pixels, double columns, double depth, double bytes, TuckerMath math, const Limits& limits) {
  const Chip chip = chip_of(limits);
  Estimate estimate{.flops = 2 * pixels * columns * depth, .bytes = bytes, .seconds = 1};
  for (const auto& [rows, width] : {std::pair{128.0, 64.0}, {64.0, 64.0}, {32.0, 32.0}}) {
    const double waves = std::ceil(std::ceil(pixels / rows) * std::ceil(columns / width) / limits.processors);
    const double share = chip.library_share * std::min(1.0, std::sqrt(rows * width / (64.0 * 64.0)));
    const double cycles = rows * width * depth / (products_of(math, chip) * share);
    const double latency = std::ceil(depth / kSlice) * kSliceLatency / 2;  // it loads more than one slice ahead
    estimate.seconds = std::min(estimate.seconds, waves * std::max(cycles, latency) / chip.clock);
  }
  estimate.seconds = chip.library_launch + std::max(estimate.seconds, bytes / chip.memory);
  return estimate;
}

void add(Estimate& sum, const Estimate& one) {
  sum.flops += one.flops;
  sum.bytes += one.bytes;
  sum.seconds += one.seconds;
}

}  // namespace

ChainCandidate predict(const ChainShape& shape, const BlockShape& block, TuckerMath math, const Limits& limits) {
  const Chip chip = chip_of(limits);
  ChainCandidate result{.block = block, .tile_h = shape.tile_h, .tile_w = shape.tile_w,
                        .shared = chain_layout(shape, block).total, .blocks = shape.grid().blocks()};
  const int classes = shape.rows.classes() * shape.columns.classes();
  Work all;
  for (int i = 0; i < classes; ++i) {
    all += block_work(shape, block, shape.rows.at(i / shape.columns.classes()), shape.columns.at(i % shape.columns.classes()));
  }
  const double blocks_of_class = static_cast<double>(result.blocks) / classes;
  result.flops = 2 * all.products * blocks_of_class;
  result.bytes = all.bytes * blocks_of_class;
  const int resident = resident_blocks(block, result.shared, limits);
  const double places = static_cast<double>(resident) * limits.processors;
  result.waves = std::ceil(static_cast<double>(result.blocks) / places);
  // Blocks side by side share the units and hide each other's latency.
  const double beside = std::min<double>(resident, std::ceil(static_cast<double>(result.blocks) / limits.processors));
  const double compute = all.products / classes / (products_of(math, chip) * inner_share(block)) * beside;
  const double latency = all.slices / classes * kSliceLatency;
  const double units = result.waves * std::max(compute, latency) / chip.clock;
  const double pixels_in = static_cast<double>(shape.images) * shape.rows.inputs() * shape.columns.inputs();
  const double pixels_out = static_cast<double>(shape.images) * shape.rows.outputs() * shape.columns.outputs();
  const double memory = (pixels_in * shape.wide_in + pixels_out * shape.wide_out) * block.element_bytes / chip.memory;
  result.seconds = chip.launch + std::max({units, result.bytes / chip.cache, memory});
  return result;
}

Estimate unfused_estimate(const TuckerConvShape& conv, bool training, const Limits& limits) {
  const double bytes = element_bytes(conv.math);
  Estimate sum;
  const auto one = [&](int pixels_in, int pixels_out, int in, int out, int taps) {
    const double before = static_cast<double>(conv.images) * pixels_in;
    const double after = static_cast<double>(conv.images) * pixels_out;
    const double weights = static_cast<double>(taps) * in * out;
    const double moved = bytes * (before * in + after * out + weights);
    add(sum, convolution(after, out, static_cast<double>(taps) * in, moved, conv.math, limits));
    if (!training) return;
    add(sum, convolution(before, in, static_cast<double>(taps) * out, moved, conv.math, limits));
    // Gradients of weights sum over pixels, which a library splits among blocks.
    Estimate weight = convolution(after, out, static_cast<double>(taps) * in, moved, conv.math, limits);
    weight.seconds += chip_of(limits).next_launch;
    add(sum, weight);
  };
  const ChainShape shape = chain_shape(conv, false, 1, 1);
  const int before = shape.rows.core.image * shape.columns.core.image;
  const int after = shape.rows.core.outs * shape.columns.core.outs;
  if (conv.in_factor) one(before, before, shape.wide_in, shape.narrow_in, 1);
  one(before, after, shape.narrow_in, shape.narrow_out, shape.taps());
  if (conv.out_factor) one(after, after, shape.narrow_out, shape.wide_out, 1);
  return sum;
}

Estimate correlations_estimate(const TuckerConvShape& conv, int walkers, const Limits& limits) {
  const Chip chip = chip_of(limits);
  const double products = products_of(conv.math == TuckerMath::f32 ? TuckerMath::f32 : TuckerMath::tf32, chip) * kCorrelateShare;
  Estimate sum;
  double weights = 0;
  double longest = 0;
  for (const CorrelationShape& shape : correlation_shapes(conv)) {
    const double tiles = static_cast<double>(shape.tiles());
    constexpr double kTile = 1.0 * kSlots * kSliceOfB * kSliceOfB * kCorrelatePixels;
    const double steps = std::ceil(tiles / walkers);
    sum.flops += 2 * tiles * shape.groups() * kTile;
    sum.bytes += tiles * shape.groups() * element_bytes(conv.math) *
                 (static_cast<double>(shape.shared_elements()) / 2);
    weights += static_cast<double>(shape.a) * shape.taps() * shape.b;
    longest = std::max(longest, steps * std::max(kSliceLatency, kTile / products) / chip.clock);
  }
  const double all = sum.flops / 2 / products / chip.clock / limits.processors;
  const double partials = 2 * 4 * weights * walkers / chip.memory;
  // With the weights' transposition and the sum of partial results.
  sum.seconds = chip.launch + 2 * chip.next_launch + std::max({all, longest, sum.bytes / chip.cache}) + partials;
  sum.bytes += 2 * 4 * weights * walkers;
  return sum;
}

}  // namespace tessera::cuda
