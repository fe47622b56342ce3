#include "bench/cases/cuda_tucker.h"

#include <algorithm>
#include <memory>

#include "bench/cases/cuda_core.h"
#include "core/cuda/runtime/context.h"
#include "core/cuda/tucker_conv/plan.h"
#include "core/device/precision.h"
#include "core/ops/conv2d_plan_cuda.h"
#include "core/ops/tucker_conv.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-3;  // of the largest value: sides differ by the order of their sums

// One entry per set.
struct Operands {
  std::vector<Tensor> x, in_factor, core, out_factor, narrow_in, narrow_out, y;

  TuckerConvTensors of(std::size_t set) const { return {x[set], in_factor[set], core[set], out_factor[set], {}}; }
};
using SharedOperands = std::shared_ptr<const Operands>;

Conv2dOptions options_of(const cuda::TuckerConvShape& conv) { return {.stride = conv.stride, .padding = conv.padding}; }

SharedOperands operands_of(const cuda::TuckerConvShape& conv, Device device) {
  const Shape x{conv.images, conv.h, conv.w, conv.in};
  const Shape in_factor{conv.rank_in, 1, 1, conv.in};
  const Shape core{conv.rank_out, conv.kernel.h, conv.kernel.w, conv.rank_in};
  const Shape out_factor{conv.out, 1, 1, conv.rank_out};
  const Shape narrow_in = conv2d_output_shape(x, in_factor);
  const Shape narrow_out = conv2d_output_shape(narrow_in, core, options_of(conv));
  const Shape y = conv2d_output_shape(narrow_out, out_factor);
  // Counts only what a fused kernel touches. The rivals also touch narrow images, so they are even further beyond the caches.
  const std::int64_t elements = x.numel() + in_factor.numel() + core.numel() + out_factor.numel() + y.numel();
  const std::size_t sets = sets_beyond_caches(static_cast<double>(elements) * sizeof(float));
  const auto drawn = [&](const Shape& shape, const char* name) { return random_sets(shape, name, DType::f32, device, sets); };
  const auto empty = [&](const Shape& shape) { return empty_sets(shape, DType::f32, device, sets); };
  return std::make_shared<const Operands>(Operands{drawn(x, "x"), drawn(in_factor, "in_factor"), drawn(core, "core"),
                                                   drawn(out_factor, "out_factor"), empty(narrow_in), empty(narrow_out),
                                                   empty(y)});
}

RotatedSide fused_side(std::string name, std::shared_ptr<const FusedTuckerConv> kernels, const SharedOperands& t) {
  const auto run = [kernels = std::move(kernels), t](std::size_t set) {
    kernels->forward(t->of(set), {}, false, t->y[set], {}, {});
  };
  return {std::move(name), run, t->y.front()};
}

RotatedSide three_convolutions(std::string name, const Conv2dOptions& options, bool libraries_alone, const SharedOperands& t) {
  const auto run = [=](std::size_t set) {
    const Tf32Products exact(false);
    const cuda::LibraryConvolutions scope(libraries_alone);
    cuda::conv2d_forward(t->x[set], t->in_factor[set], {}, t->narrow_in[set], {});
    cuda::conv2d_forward(t->narrow_in[set], t->core[set], {}, t->narrow_out[set], options);
    cuda::conv2d_forward(t->narrow_out[set], t->out_factor[set], {}, t->y[set], {});
  };
  return {std::move(name), run, t->y.front()};
}

// Takes the way that tucker2_conv2d chooses. It writes to preallocated images.
RotatedSide op_side(const Conv2dOptions& options, const SharedOperands& t) {
  const Tf32Products exact(false);
  const TuckerConvTensors first = t->of(0);
  std::string reason =
      tucker_conv_reason(Var(first.x), Var(first.in_factor), Var(first.core), Var(first.out_factor), options, false);
  if (!reason.empty()) return three_convolutions("three convolutions", options, false, t);
  return fused_side("fused", cuda::fused_tucker_conv(first, options, false, reason), t);
}

// "4x8 pixels in blocks of 32x32": the output pixels of a thread block, then the pixels and channels of its products.
std::string describe(const cuda::ChainCandidate& chain) {
  return str(chain.tile_h, 'x', chain.tile_w, " pixels in blocks of ", chain.block.rows, 'x', chain.block.columns);
}

bool same_tile(const cuda::ChainCandidate& a, const cuda::ChainCandidate& b) { return describe(a) == describe(b); }

// All distinct candidates, the model's choice first: the planner takes the first one with the least prediction. Tiles that the
// image cuts down to the same size count as one.
std::vector<cuda::ChainCandidate> ranked_candidates(const cuda::TuckerConvShape& conv, const cuda::Limits& limits) {
  std::vector<cuda::ChainCandidate> all = cuda::chain_candidates(conv, false, limits);
  std::ranges::stable_sort(all, {}, &cuda::ChainCandidate::seconds);
  std::vector<cuda::ChainCandidate> distinct;
  for (const cuda::ChainCandidate& chain : all) {
    if (std::ranges::none_of(distinct, [&](const auto& other) { return same_tile(chain, other); })) distinct.push_back(chain);
  }
  return distinct;
}

}  // namespace

std::vector<cuda::TuckerConvShape> tucker_shapes() {
  std::vector<cuda::TuckerConvShape> shapes;
  for (const ConvShape& core : core_shapes()) {
    shapes.push_back({.images = core.n, .h = core.size, .w = core.size, .in = 2 * core.in, .rank_in = core.in,
                      .rank_out = core.out, .out = 2 * core.out});
  }
  return shapes;
}

std::string to_string(const cuda::TuckerConvShape& conv) {
  return str(conv.images, 'x', conv.h, 'x', conv.w, 'x', conv.in, " -> ", conv.rank_in, " -> ", conv.rank_out, " -> ", conv.out,
             ", ", conv.kernel);
}

TilePick tucker_pick(const cuda::TuckerConvShape& conv, const cuda::Limits& limits) {
  const cuda::TuckerPlanning planning = cuda::plan_tucker_conv(conv, false, limits);
  if (planning.wins) return {str("fused, ", describe(planning.plan->forward))};
  return {"three convolutions", planning.reason};
}

TilePick tucker_pick(const cuda::TuckerConvShape& conv, Device device) { return tucker_pick(conv, cuda::limits_of(device)); }

SweptCase tucker_case(const cuda::TuckerConvShape& conv, Device device) {
  const cuda::Limits& limits = cuda::limits_of(device);
  const cuda::TuckerPlanning planning = cuda::plan_tucker_conv(conv, false, limits);
  TESSERA_CHECK(planning.plan, InternalError, "Tucker-2 ", to_string(conv), ": no block can run it: ", planning.reason);
  const SharedOperands t = operands_of(conv, device);
  const Conv2dOptions options = options_of(conv);
  std::vector<Tile> tiles;
  for (const cuda::ChainCandidate& chain : ranked_candidates(conv, limits)) {
    const cuda::TuckerPlan plan{.forward = chain, .backward = chain, .seconds = chain.seconds};
    tiles.push_back({fused_side(describe(chain), cuda::fused_tucker_conv(conv, plan, true, device), t), chain.seconds});
  }
  RotatedCase rotated{.op = "Tucker-2",
                      .shape = to_string(conv),
                      .pass = "inference",
                      .precision = "f32",
                      .flops = planning.unfused.flops,
                      .sets = t->x.size(),
                      .ours = {op_side(options, t)},
                      .rivals = {three_convolutions("three convolutions by libraries", options, true, t),
                                 three_convolutions("three convolutions by conv2d", options, false, t)},
                      .tolerance = kAgreement};
  SweptCase swept = with_swept_tiles(std::move(rotated), std::move(tiles), device);
  swept.taken = swept.rotated.ours.front().name;
  return swept;
}

}  // namespace tessera::bench
