// Predicted times of a fused Tucker-2 convolution and of three convolutions.
#include <algorithm>
#include <cmath>

#include "core/cuda/core_conv/core_conv.h"
#include "core/cuda/core_conv/model.h"
#include "core/cuda/runtime/chip.h"
#include "core/cuda/tucker_conv/plan.h"
#include "core/support/rounding.h"

namespace tessera::cuda {
namespace {

// Fitted by least squares to times of an H100 in f32: layers around TDC's first 13 shapes with every tile and block, 728 in all
// (`cuda_op_bench --part tucker`). The root mean square of log(predicted / measured) is 0.06, also on a shape left out of the
// fit. Little hides a slice's latency: between two barriers, threads find the addresses of the next slice before they multiply
// this one. Other types are assumed to have the same latency.
constexpr double kSliceLatency = 1610;  // cycles of a slice besides its products
constexpr double kShare = 0.67;  // share of the f32 units' peak that is reached if operands cost nothing

// A guess, like the share of the tensor cores in inner_share().
constexpr double kCorrelateShare = 0.4;  // share of the units' peak in correlate.h: its threads make ten reads for 36 products

double element_bytes(TuckerMath math) { return math == TuckerMath::f32 || math == TuckerMath::tf32 ? 4 : 2; }

// Multiply-adds of one processor per cycle.
double products_of(TuckerMath math, const Chip& chip) {
  if (math == TuckerMath::f32) return chip.lanes;
  return math == TuckerMath::tf32 ? chip.tensor / 2 : chip.tensor;
}

// Share of the peak that a block's inner loop is assumed to reach. For its `rows` x 4 sums a thread reads rows + 4 operands from
// shared memory.
double inner_share(const BlockShape& block) {
  if (block.tensor_cores) return block.rows * block.columns / (64.0 * 64.0) * 0.12 + 0.08;
  const double rows = block.rows * block.columns / 1024.0;
  return kShare * 4 * rows / (4 * rows + rows + 4);
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

// rows x columns sums over `depth` channels, `taps` times. The left operand is staged too if `left_bytes` (per element) is not 0.
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

// One pass of one of the three convolutions: by the library or, in f32 where plan_core_conv() has a plan, by core_conv/.
Estimate convolution(Conv2dPass pass, const Conv2dGeometry& geometry, TuckerMath math, const Limits& limits) {
  const auto product = core_conv::library_product(pass, geometry, element_bytes(math), math != TuckerMath::f32);
  Estimate estimate{.flops = geometry.flops(), .bytes = product.bytes, .seconds = core_conv::seconds_of_library(product, limits)};
  if (math != TuckerMath::f32) return estimate;
  if (const auto plan = plan_core_conv(pass, geometry, DType::f32, limits, nullptr)) estimate.seconds = plan->seconds;
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
  // Resident blocks of a processor share its units and wait for their slices at the same time.
  const double compute = all.products / classes / (products_of(math, chip) * inner_share(block));
  const double latency = all.slices / classes * kSliceLatency;
  const double busiest = std::ceil(static_cast<double>(result.blocks) / limits.processors);
  const double units = (busiest * compute + result.waves * latency) / chip.clock;
  const double pixels_in = static_cast<double>(shape.images) * shape.rows.inputs() * shape.columns.inputs();
  const double pixels_out = static_cast<double>(shape.images) * shape.rows.outputs() * shape.columns.outputs();
  const double memory = (pixels_in * shape.wide_in + pixels_out * shape.wide_out) * block.element_bytes / chip.memory;
  result.seconds = chip.launch + std::max({units, result.bytes / chip.cache, memory});
  return result;
}

Estimate unfused_estimate(const TuckerConvShape& conv, bool training, const Limits& limits) {
  Estimate sum;
  const auto one = [&](const Conv2dGeometry& geometry) {
    add(sum, convolution(Conv2dPass::forward, geometry, conv.math, limits));
    if (!training) return;
    add(sum, convolution(Conv2dPass::backward_input, geometry, conv.math, limits));
    add(sum, convolution(Conv2dPass::backward_weight, geometry, conv.math, limits));
  };
  const std::int64_t oh = conv.rows().outs, ow = conv.columns().outs;
  if (conv.in_factor) one({conv.images, conv.h, conv.w, conv.in, conv.rank_in, 1, 1, conv.h, conv.w, {}});
  one({conv.images, conv.h, conv.w, conv.rank_in, conv.rank_out, conv.kernel.h, conv.kernel.w, oh, ow,
       {.stride = conv.stride, .padding = conv.padding}});
  if (conv.out_factor) one({conv.images, oh, ow, conv.rank_out, conv.out, 1, 1, oh, ow, {}});
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
    longest = std::max(longest, steps * (kSliceLatency + kTile / products) / chip.clock);
  }
  const double all = sum.flops / 2 / products / chip.clock / limits.processors;
  const double partials = 2 * 4 * weights * walkers / chip.memory;
  // Includes the transposition of the weights and the sum of the partial results.
  sum.seconds = chip.launch + 2 * chip.next_launch + std::max({all, longest, sum.bytes / chip.cache}) + partials;
  sum.bytes += 2 * 4 * weights * walkers;
  return sum;
}

}  // namespace tessera::cuda
