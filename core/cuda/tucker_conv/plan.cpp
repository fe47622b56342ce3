#include "core/cuda/tucker_conv/plan.h"

#include <algorithm>
#include <limits>

#include "core/support/error.h"

namespace tessera::cuda {
namespace {

// The blocks of Ffma and Mma in the lists of launch_ffma.cu and launch_mma.cu.
constexpr BlockShape kF32[] = {
    {.rows = 16, .columns = 64, .element_bytes = 4, .tensor_cores = false},
    {.rows = 32, .columns = 32, .element_bytes = 4, .tensor_cores = false},
    {.rows = 64, .columns = 32, .element_bytes = 4, .tensor_cores = false},
    {.rows = 128, .columns = 32, .element_bytes = 4, .tensor_cores = false},
    {.rows = 64, .columns = 64, .element_bytes = 4, .tensor_cores = false},
    {.rows = 128, .columns = 64, .element_bytes = 4, .tensor_cores = false},
};
constexpr BlockShape kTf32[] = {
    {.rows = 64, .columns = 32, .element_bytes = 4, .tensor_cores = true},
    {.rows = 64, .columns = 64, .element_bytes = 4, .tensor_cores = true},
    {.rows = 128, .columns = 64, .element_bytes = 4, .tensor_cores = true},
};
constexpr BlockShape kHalf[] = {
    {.rows = 64, .columns = 32, .element_bytes = 2, .tensor_cores = true},
    {.rows = 64, .columns = 64, .element_bytes = 2, .tensor_cores = true},
    {.rows = 128, .columns = 64, .element_bytes = 2, .tensor_cores = true},
};

// Tiles of outputs: a small tile spreads a small image over many processors, a large one recomputes little halo.
constexpr Extent kTiles[] = {{2, 2}, {2, 4}, {4, 4}, {4, 8}, {7, 7}, {8, 8}, {7, 14}, {8, 16}, {14, 14}, {16, 16}};

constexpr int kMostWalkers = 256;
constexpr int kMostGroups = 65535;  // groups of correlations, the second axis of their grid
constexpr double kPartialBytes = 64e6;  // bytes that partial weight gradients may take
constexpr double kSure = 1.15;  // a smaller lead may be an error of the predictions

CoreAxis axis_of(std::int64_t image, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const std::int64_t outs = (image + 2 * padding - kernel) / stride + 1;
  return {static_cast<int>(image), static_cast<int>(outs), static_cast<int>(kernel), static_cast<int>(stride),
          static_cast<int>(padding)};
}

// Upper bound, for any tile, of the 32-bit byte count of chain_layout(): two narrow images under at most 16 x 16 outputs.
double shared_bound(const TuckerConvShape& conv) {
  const double window = static_cast<double>(conv.kernel.h + 32) * static_cast<double>(conv.kernel.w + 32);
  return 8 * window * static_cast<double>(std::max(conv.rank_in, conv.rank_out) + 32);
}

int correlation_groups(const TuckerConvShape& conv) {
  int groups = 0;
  for (const CorrelationShape& shape : correlation_shapes(conv)) groups += shape.groups();
  return groups;
}

// Why the kernels cannot take the shape; empty if they can. The limit of shared memory is checked elsewhere.
std::string refusal(const TuckerConvShape& conv, bool training, const Limits& limits) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (limits.capability < 80) return str("the GPU's compute capability is ", limits.capability, "; the kernels need 80");
  if (!conv.in_factor && !conv.out_factor) return "there is no factor to fuse with the core";
  if (conv.images == 0) return "the batch is empty";
  for (const std::int64_t stride : {conv.stride.h, conv.stride.w}) {
    if (stride != 1 && stride != 2) return str("the stride is ", conv.stride, "; the kernels take 1 and 2");
  }
  if (conv.padding.h >= conv.kernel.h || conv.padding.w >= conv.kernel.w) {
    return str("the padding, ", conv.padding, ", is not smaller than the kernel, ", conv.kernel);
  }
  if (std::max({conv.images, conv.h, conv.w, conv.in, conv.out}) > kMost / 4096 ||
      std::max({conv.rank_in * conv.in, conv.rank_in * conv.rank_out, conv.rank_out * conv.out}) >
          kMost / 4 / (conv.kernel.h * conv.kernel.w) ||
      shared_bound(conv) > static_cast<double>(kMost)) {
    return "a size is more than the kernels can count in 32 bits";
  }
  if (const int groups = correlation_groups(conv); training && groups > kMostGroups) {
    return str("the weights' gradients have ", groups, " groups of sums; the kernels take ", kMostGroups);
  }
  return {};
}

int partial_elements(const TuckerConvShape& conv) {
  int size = static_cast<int>(conv.out);
  for (const CorrelationShape& shape : correlation_shapes(conv)) size += shape.a * shape.taps() * shape.b;
  return size;
}

bool correlations_fit(const TuckerConvShape& conv, const Limits& limits) {
  const std::size_t bytes = conv.math == TuckerMath::f32 || conv.math == TuckerMath::tf32 ? 4 : 2;
  return std::ranges::all_of(correlation_shapes(conv), [&](const CorrelationShape& shape) {
    return static_cast<std::size_t>(shape.shared_elements()) * bytes <= limits.shared_per_block;
  });
}

std::optional<ChainCandidate> best(const std::vector<ChainCandidate>& candidates) {
  if (candidates.empty()) return std::nullopt;
  return *std::ranges::min_element(candidates, {}, &ChainCandidate::seconds);
}

std::string microseconds(double seconds) { return str(static_cast<std::int64_t>(seconds * 1e7 + 0.5) / 10.0, " us"); }

}  // namespace

CoreAxis TuckerConvShape::rows() const { return axis_of(h, kernel.h, stride.h, padding.h); }
CoreAxis TuckerConvShape::columns() const { return axis_of(w, kernel.w, stride.w, padding.w); }

std::span<const BlockShape> chain_blocks(TuckerMath math) {
  if (math == TuckerMath::f32) return kF32;
  return math == TuckerMath::tf32 ? std::span<const BlockShape>(kTf32) : std::span<const BlockShape>(kHalf);
}

ChainShape chain_shape(const TuckerConvShape& conv, bool backward, int tile_h, int tile_w) {
  const auto in = static_cast<int>(conv.in);
  const auto rank_in = static_cast<int>(conv.rank_in);
  const auto rank_out = static_cast<int>(conv.rank_out);
  const auto out = static_cast<int>(conv.out);
  ChainShape shape{.rows = {conv.rows(), backward}, .columns = {conv.columns(), backward},
                   .images = static_cast<int>(conv.images), .wide_in = in, .narrow_in = rank_in, .narrow_out = rank_out,
                   .wide_out = out, .has_in = conv.in_factor, .has_out = conv.out_factor, .tile_h = tile_h, .tile_w = tile_w};
  if (backward) {
    std::swap(shape.wide_in, shape.wide_out);
    std::swap(shape.narrow_in, shape.narrow_out);
    std::swap(shape.has_in, shape.has_out);
  }
  return shape;
}

std::vector<CorrelationShape> correlation_shapes(const TuckerConvShape& conv) {
  const auto pointwise = [](int size) { return CoreAxis{size, size, 1, 1, 0}; };
  const CoreAxis rows = conv.rows();
  const CoreAxis columns = conv.columns();
  const auto images = static_cast<int>(conv.images);
  const auto rank_in = static_cast<int>(conv.rank_in);
  const auto rank_out = static_cast<int>(conv.rank_out);
  std::vector<CorrelationShape> shapes{{images, rows, columns, rank_out, rank_in}};
  if (conv.in_factor) {
    shapes.push_back({images, pointwise(rows.image), pointwise(columns.image), rank_in, static_cast<int>(conv.in)});
  }
  if (conv.out_factor) {
    shapes.push_back({images, pointwise(rows.outs), pointwise(columns.outs), static_cast<int>(conv.out), rank_out});
  }
  return shapes;
}

std::vector<ChainCandidate> chain_candidates(const TuckerConvShape& conv, bool backward, const Limits& limits) {
  std::vector<ChainCandidate> candidates;
  const ChainShape whole = chain_shape(conv, backward, 1, 1);
  for (const BlockShape& block : chain_blocks(conv.math)) {
    for (const Extent& tile : kTiles) {
      // A tile is no larger than one class of the image.
      const ChainShape shape = chain_shape(conv, backward, std::min(static_cast<int>(tile.h), whole.rows.at(0).outs),
                                           std::min(static_cast<int>(tile.w), whole.columns.at(0).outs));
      const std::size_t shared = static_cast<std::size_t>(chain_layout(shape, block).total);
      if (shared > limits.shared_per_block || shape.grid().blocks() > std::numeric_limits<int>::max()) continue;
      candidates.push_back(predict(shape, block, conv.math, limits));
    }
  }
  return candidates;
}

int walkers_for(const TuckerConvShape& conv, const Limits& limits) {
  std::int64_t tiles = 1;
  for (const CorrelationShape& shape : correlation_shapes(conv)) tiles = std::max(tiles, shape.tiles());
  const int resident = ceil_div(2 * limits.processors, correlation_groups(conv));
  const auto room = static_cast<int>(kPartialBytes / (4.0 * partial_elements(conv)));
  return static_cast<int>(std::clamp<std::int64_t>(std::min(resident, room), 1, std::min<std::int64_t>(tiles, kMostWalkers)));
}

TuckerPlanning plan_tucker_conv(const TuckerConvShape& conv, bool training, const Limits& limits) {
  TuckerPlanning planning;
  planning.reason = refusal(conv, training, limits);
  if (!planning.reason.empty()) return planning;
  planning.unfused = unfused_estimate(conv, training, limits);
  const auto forward = best(chain_candidates(conv, false, limits));
  const auto backward = training ? best(chain_candidates(conv, true, limits)) : forward;
  if (!forward || !backward || (training && !correlations_fit(conv, limits))) {
    planning.reason = str("ranks of ", conv.rank_in, " and ", conv.rank_out, " do not fit ", limits.shared_per_block,
                          " bytes of shared memory");
    return planning;
  }
  TuckerPlan plan{.forward = *forward, .backward = *backward, .seconds = forward->seconds};
  if (training) {
    plan.walkers = walkers_for(conv, limits);
    plan.seconds += backward->seconds + correlations_estimate(conv, plan.walkers, limits).seconds;
  }
  planning.wins = plan.seconds * kSure < planning.unfused.seconds;
  if (!planning.wins) {
    planning.reason = str("the model predicts ", microseconds(plan.seconds), " fused and ",
                          microseconds(planning.unfused.seconds), " as three convolutions",
                          plan.seconds < planning.unfused.seconds ? ", too close to tell" : "");
  }
  planning.plan = plan;
  return planning;
}

}  // namespace tessera::cuda
