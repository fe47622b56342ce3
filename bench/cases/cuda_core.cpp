#include "bench/cases/cuda_core.h"

#include <memory>

#include "bench/cases/cuda_cases.h"
#include "bench/tdc_shapes.h"
#include "core/cuda/core_conv/core_conv.h"
#include "core/cuda/runtime/context.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

struct Operands {
  std::vector<Tensor> x, weight, y;
};

Conv2dGeometry geometry(const ConvShape& s) {
  return {s.n, s.size, s.size, s.in, s.out, s.kernel, s.kernel, s.out_size(), s.out_size(), s.options()};
}

RotatedSide tile_side(const cuda::CoreConvPlan& plan, const std::shared_ptr<const Operands>& t) {
  const auto run = [plan, t](std::size_t set) { cuda::run_core_conv(plan, t->x[set], t->weight[set], {}, t->y[set]); };
  return {cuda::describe(plan), run, t->y.front()};
}

}  // namespace

std::vector<ConvShape> core_shapes() {
  std::vector<ConvShape> shapes;
  for (const TdcCore& core : kTdcCores) shapes.push_back({1, core.in, core.out, core.size, 3});
  return shapes;
}

TilePick core_pick(const ConvShape& shape, const cuda::Limits& limits) {
  std::string reason;
  const auto plan = cuda::plan_core_conv(Conv2dPass::forward, geometry(shape), DType::f32, limits, &reason);
  if (plan) return {str("own ", cuda::describe(*plan))};
  return {"library", std::move(reason)};
}

TilePick core_pick(const ConvShape& shape, Device device) { return core_pick(shape, cuda::limits_of(device)); }

SweptCase core_case(const ConvShape& shape, Device device) {
  RotatedCase rotated = cuda_conv_case(ConvPass::forward, shape, "f32", device);
  const auto operands =
      std::make_shared<const Operands>(Operands{random_sets(shape.x(), "x", DType::f32, device, rotated.sets),
                                                random_sets(shape.weight(), "weight", DType::f32, device, rotated.sets),
                                                empty_sets(shape.y(), DType::f32, device, rotated.sets)});
  std::string reason;
  std::vector<cuda::CoreConvPlan> plans =
      cuda::core_conv_candidates(Conv2dPass::forward, geometry(shape), DType::f32, cuda::limits_of(device), &reason);
  TESSERA_CHECK(!plans.empty(), InternalError, "core conv2d ", to_string(shape), ": no tile can run it: ", reason);
  std::vector<Tile> tiles;
  for (const cuda::CoreConvPlan& plan : plans) tiles.push_back({tile_side(plan, operands), plan.seconds});
  rotated.op = "core conv2d";
  return with_swept_tiles(std::move(rotated), std::move(tiles), device);
}

}  // namespace tessera::bench
