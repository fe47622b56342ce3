#include <algorithm>
#include <set>

#include "core/cuda/core_conv/core_conv.h"
#include "core/cuda/core_conv/model.h"
#include "core/cuda/core_conv/problems.h"
#include "core/support/error.h"
#include "core/support/rounding.h"
#include "core/support/text.h"

namespace tessera::cuda {
namespace {

using core_conv::BlockWork;
using core_conv::GatherProblem;
using core_conv::GatherSizes;
using core_conv::GatherTile;
using core_conv::KernelWork;
using core_conv::WeightProblem;
using core_conv::WeightSizes;
using core_conv::WeightTile;

constexpr int kMostSplits = 16;  // most parts that the channels are split into
constexpr std::size_t kMostWorkspace = 16u << 20;  // floats
constexpr double kFloat = sizeof(float);

double compulsory_bytes(const Conv2dGeometry& g) { return kFloat * core_conv::compulsory_elements(g); }

// Mean number of rows (or columns) of the kernel that a phase uses.
double mean_taps(const core_conv::Axis* axes, int phases) {
  double taps = 0;
  for (int i = 0; i < phases; ++i) taps += axes[i].taps;
  return taps / phases;
}

KernelWork work_of(const GatherProblem& p, const GatherTile& tile, double bytes) {
  const GatherSizes sizes(tile, p.stride);
  const double kx = mean_taps(p.columns, p.step), ky = mean_taps(p.rows, p.step);
  const double quads = static_cast<double>(sizes.quads) / tile.groups;
  const double input = sizes.input_copies() * (p.quads_of_input ? 1 : 4);
  const double weights = sizes.weight_copies() * (p.quads_of_weight ? 1 : 4);
  KernelWork work{};
  work.block.threads = sizes.threads;
  work.block.registers = sizes.registers();
  work.block.shared = static_cast<std::int64_t>(sizes.shared) * static_cast<std::int64_t>(sizeof(float));
  work.block.stages = static_cast<double>(p.stages) / p.splits;
  work.block.most_stages = ceil_div(p.stages, p.splits);
  work.block.products = quads * kx * ky * sizes.sums * 4;
  work.block.reads = quads * kx * (sizes.window + ky * tile.outs);
  work.block.copies = (input + weights) / sizes.threads;
  work.block.bytes = kFloat * 4 * (sizes.input_copies() + sizes.weight_copies());
  work.block.tail = tile.groups > 1 ? 230.0 + 9.0 * tile.groups * sizes.sums : 0.0;  // fitted like model.cpp's constants
  work.blocks = static_cast<double>(p.images) * p.phases() * p.tiles_y * p.tiles_x * p.out_tiles * p.splits;
  work.bytes = bytes;
  return work;
}

KernelWork work_of(const WeightProblem& p, const WeightTile& tile, double bytes) {
  const WeightSizes sizes(tile, p.stride);
  const double pixels = tile.rows * tile.columns;
  const double input = sizes.input / (p.quads_of_input ? 4 : 1);
  const double gradient = (sizes.stage - sizes.input) / (p.quads_of_gradient ? 4 : 1);
  KernelWork work{};
  work.block.threads = sizes.threads;
  work.block.registers = sizes.registers();
  work.block.shared = static_cast<std::int64_t>(sizes.shared) * static_cast<std::int64_t>(sizeof(float));
  work.block.stages = static_cast<double>(p.stages) / p.splits;
  work.block.most_stages = ceil_div(p.stages, p.splits);
  work.block.products = pixels * 16 * core_conv::kTaps;
  work.block.reads = pixels * (1 + p.stride);
  work.block.copies = (input + gradient) / sizes.threads;
  work.block.bytes = kFloat * sizes.stage;
  work.blocks = static_cast<double>(p.in_tiles) * p.out_tiles * p.splits;
  work.bytes = bytes;
  return work;
}

// Adds `plan` with one problem, tile and number of splits, if it fits the GPU and the limit of the workspace.
template <class Problem, class Tile>
void add_candidate(std::vector<CoreConvPlan>& plans, CoreConvPlan plan, Problem CoreConvPlan::*member, const Tile& tile,
                   int splits, double bytes, const Limits& limits) {
  Problem& problem = plan.*member;
  apply(problem, tile, splits);
  const KernelWork work = work_of(problem, tile, bytes);
  if (static_cast<std::size_t>(work.block.shared) > limits.shared_per_block || plan.workspace() > kMostWorkspace) return;
  plan.seconds = core_conv::seconds_of(work, limits);
  if (splits > 1) plan.seconds += core_conv::seconds_of_add_splits(plan.numel(), splits, limits);
  plans.push_back(plan);
}

void add_gather(std::vector<CoreConvPlan>& plans, CoreConvPlan plan, const Conv2dGeometry& g, const Limits& limits) {
  plan.gather = core_conv::gather_problem(plan.pass, g);
  plan.full = core_conv::is_full(plan.gather);
  const bool many = plan.full && plan.gather.stride == 1;
  const auto count = static_cast<int>(many ? core_conv::kFullTiles.size() : core_conv::kOtherTiles.size());
  for (plan.tile = 0; plan.tile < count; ++plan.tile) {
    const GatherTile tile = core_conv::gather_tile(plan.full, plan.gather.stride, plan.tile);
    const int stages = ceil_div(plan.gather.channels, tile.channels);
    for (int splits = 1; splits <= std::min(stages, kMostSplits); ++splits)
      add_candidate(plans, plan, &CoreConvPlan::gather, tile, splits, compulsory_bytes(g), limits);
  }
}

// Tries numbers of splits that fill every processor one to four times, and powers of two.
void add_weight(std::vector<CoreConvPlan>& plans, CoreConvPlan plan, const Conv2dGeometry& g, const Limits& limits) {
  plan.weight = core_conv::weight_problem(g);
  for (plan.tile = 0; plan.tile < static_cast<int>(core_conv::kWeightTiles.size()); ++plan.tile) {
    const WeightTile tile = core_conv::kWeightTiles[static_cast<std::size_t>(plan.tile)];
    apply(plan.weight, tile, 1);
    const int stages = plan.weight.stages, tiles = plan.weight.in_tiles * plan.weight.out_tiles;
    std::set<int> choices{1};
    for (int splits = 2; splits <= stages && splits <= 1024; splits *= 2) choices.insert(splits);
    for (int waves = 1; waves <= 4; ++waves) choices.insert(std::clamp(limits.processors * waves / tiles, 1, stages));
    for (const int splits : choices) add_candidate(plans, plan, &CoreConvPlan::weight, tile, splits, compulsory_bytes(g), limits);
  }
}

}  // namespace

std::vector<CoreConvPlan> core_conv_candidates(Conv2dPass pass, const Conv2dGeometry& geometry, DType dtype, const Limits& limits,
                                               std::string* reason) {
  std::vector<CoreConvPlan> plans;
  const std::string why = core_conv::refusal(geometry, dtype);
  if (reason != nullptr) *reason = why;
  if (!why.empty()) return plans;
  CoreConvPlan plan;
  plan.pass = pass;
  plan.weights = geometry.out * geometry.kh * geometry.kw * geometry.in;
  plan.library_seconds = core_conv::seconds_of_library(core_conv::library_product(pass, geometry, kFloat, false), limits);
  if (pass == Conv2dPass::backward_weight) {
    add_weight(plans, plan, geometry, limits);
  } else {
    add_gather(plans, plan, geometry, limits);
  }
  std::stable_sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  if (plans.empty() && reason != nullptr) {
    *reason = str("no tile fits the GPU, whose blocks have ", limits.shared_per_block, " bytes of shared memory");
  }
  return plans;
}

std::optional<CoreConvPlan> plan_core_conv(Conv2dPass pass, const Conv2dGeometry& geometry, DType dtype, const Limits& limits,
                                           std::string* reason) {
  const std::vector<CoreConvPlan> plans = core_conv_candidates(pass, geometry, dtype, limits, reason);
  if (plans.empty()) return std::nullopt;
  const CoreConvPlan& best = plans.front();
  if (best.seconds <= best.library_seconds) return best;
  if (reason != nullptr) {
    *reason = str("the library is predicted to be faster: ", formatted("%.2f", best.library_seconds * 1e6), " us against ",
                  formatted("%.2f", best.seconds * 1e6), " us");
  }
  return std::nullopt;
}

std::string describe(const CoreConvPlan& plan) {
  if (plan.pass == Conv2dPass::backward_weight) {
    const WeightTile tile = core_conv::kWeightTiles[static_cast<std::size_t>(plan.tile)];
    return str(4 * tile.out_quads, "x", 4 * tile.in_quads, " channels, ", tile.columns, "x", tile.rows, " pixels a stage, ",
               plan.splits(), plan.splits() == 1 ? " split" : " splits");
  }
  const GatherTile tile = core_conv::gather_tile(plan.full, plan.gather.stride, plan.tile);
  const GatherSizes sizes(tile, plan.gather.stride);
  return str(tile.columns, "x", sizes.tile_rows, " pixels x ", sizes.outs, " channels, ", tile.groups, " groups, ", plan.splits(),
             plan.splits() == 1 ? " split" : " splits");
}

}  // namespace tessera::cuda
