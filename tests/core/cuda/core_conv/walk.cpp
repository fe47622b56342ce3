#include <type_traits>

#include "core/cpu/parallel.h"
#include "core/cuda/core_conv/gather.h"
#include "core/cuda/core_conv/weight_gradient.h"
#include "tests/core/cuda/core_conv/walk.h"

namespace tessera::core_conv_walk {
namespace {

template <int kWidth>
using Width = std::integral_constant<int, kWidth>;  // width of a copy, in floats

std::size_t size(int count) { return static_cast<std::size_t>(count); }

// Adds the sums of the later groups to those of the first group, in order, through shared memory.
template <GatherTile kTile, class Block>
void add_groups(Shared& shared, std::vector<typename Block::Sums>& sums) {
  constexpr auto kSizes = Block::kSizes;
  for (int thread = kSizes.group_threads; thread < kSizes.threads; ++thread) {
    for (int i = 0; i < kSizes.sums; ++i) {
      const int at = Block::exchange_at(thread, i / kTile.outs, i % kTile.outs);
      TESSERA_CHECK(at >= 0 && at < kSizes.exchange, InternalError, "sums of a group behind shared memory");
      *shared.at(at) = sums[size(thread)].at[i / kTile.outs][i % kTile.outs];
    }
  }
  for (int thread = 0; thread < kSizes.group_threads; ++thread) {
    auto& own = sums[size(thread)];
    for (int group = 1; group < kTile.groups; ++group) {
      const int other = thread + group * kSizes.group_threads;
      for (int i = 0; i < kSizes.sums; ++i)
        own.at[i / kTile.outs][i % kTile.outs] += *shared.at(Block::exchange_at(other, i / kTile.outs, i % kTile.outs));
    }
  }
}

template <GatherTile kTile, int kStride, bool kFull>
void gather_block(const GatherBlock<kTile, kStride, kFull>& block, const Floats& input, const Floats& weight, const Floats& bias,
                  Target& target) {
  using Block = GatherBlock<kTile, kStride, kFull>;
  constexpr GatherSizes kSizes{kTile, kStride};
  Shared shared(kSizes.shared);
  std::vector<typename Block::Sums> sums(size(kSizes.threads));
  const GatherProblem& p = block.problem;
  run_stages(block, shared, sums, [&](int stage, int buffer) {
    const auto copy_input = [&]<int kWidth>(Width<kWidth>) {
      deal(kSizes.threads, kSizes.input_copies() * 4 / kWidth,
           [&](int item) { shared.copy<kWidth>(buffer, kSizes.input, input, block.template input_copy<kWidth>(stage, item)); });
    };
    const auto copy_weight = [&]<int kWidth>(Width<kWidth>) {
      deal(kSizes.threads, kSizes.weight_copies() * 4 / kWidth,
           [&](int item) { shared.copy<kWidth>(buffer, kSizes.stage, weight, block.template weight_copy<kWidth>(stage, item)); });
    };
    p.quads_of_input ? copy_input(Width<4>()) : copy_input(Width<1>());
    p.quads_of_weight ? copy_weight(Width<4>()) : copy_weight(Width<1>());
  });

  add_groups<kTile, Block>(shared, sums);
  const std::size_t first = p.splits > 1 ? size(block.split) * size(p.numel()) : 0;
  for (int thread = 0; thread < kSizes.group_threads; ++thread) {
    block.for_each_result(thread, sums[size(thread)], [&](int at, int out, float sum) {
      const bool shift = p.splits == 1 && !bias.empty();
      target.store(first + size(at), shift ? sum + bias[size(out)] : sum);
    });
  }
}

template <GatherTile kTile, int kStride, bool kFull>
void gather_grid(const GatherProblem& p, const Floats& input, const Floats& weight, const Floats& bias, Target& target) {
  const int tiles = p.images * p.phases() * p.tiles_y * p.tiles_x;
  cpu::parallel_for(std::int64_t{tiles} * p.out_tiles * p.splits, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto x = static_cast<int>(i % tiles), rest = static_cast<int>(i / tiles);
      const GatherBlock<kTile, kStride, kFull> block(p, x, rest % p.out_tiles, rest / p.out_tiles);
      if (!block.empty()) gather_block(block, input, weight, bias, target);
    }
  });
}

template <WeightTile kTile, int kStride>
void weight_grid(const WeightProblem& p, const Floats& input, const Floats& gradient, Target& target) {
  using Block = WeightBlock<kTile, kStride>;
  constexpr WeightSizes kSizes{kTile, kStride};
  cpu::parallel_for(std::int64_t{p.in_tiles} * p.out_tiles * p.splits, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto x = static_cast<int>(i % p.in_tiles), rest = static_cast<int>(i / p.in_tiles);
      const Block block(p, x, rest % p.out_tiles, rest / p.out_tiles);
      Shared shared(kSizes.shared);
      std::vector<typename Block::Sums> sums(size(kSizes.threads));
      run_stages(block, shared, sums, [&](int stage, int buffer) {
        const auto place = block.place(stage);
        const auto copy = [&]<int kWidth>(Width<kWidth>, bool is_input) {
          deal(kSizes.threads, (is_input ? kSizes.input : kSizes.stage - kSizes.input) / kWidth, [&](int item) {
            const Copy one =
                is_input ? block.template input_copy<kWidth>(place, item) : block.template gradient_copy<kWidth>(place, item);
            shared.copy<kWidth>(buffer, is_input ? kSizes.input : kSizes.stage, is_input ? input : gradient, one);
          });
        };
        p.quads_of_input ? copy(Width<4>(), true) : copy(Width<1>(), true);
        p.quads_of_gradient ? copy(Width<4>(), false) : copy(Width<1>(), false);
      });
      for (int thread = 0; thread < kSizes.threads; ++thread) {
        block.for_each_result(thread, sums[size(thread)],
                              [&](int at, float sum) { target.store(size(block.split) * size(p.numel()) + size(at), sum); });
      }
    }
  });
}

}  // namespace

Floats run(const cuda::CoreConvPlan& plan, const Floats& a, const Floats& b, const Floats& bias) {
  const auto numel = size(plan.numel());
  Target target(plan.splits() > 1 ? plan.workspace() : numel);
  if (plan.pass == Conv2dPass::backward_weight) {
    visit_tile<kWeightTiles>(plan.tile, [&]<WeightTile kTile>() {
      plan.weight.stride == 1 ? weight_grid<kTile, 1>(plan.weight, a, b, target)
                              : weight_grid<kTile, 2>(plan.weight, a, b, target);
    });
  } else if (plan.full && plan.gather.stride == 1) {
    visit_tile<kFullTiles>(plan.tile, [&]<GatherTile kTile>() { gather_grid<kTile, 1, true>(plan.gather, a, b, bias, target); });
  } else if (plan.full) {
    visit_tile<kOtherTiles>(plan.tile, [&]<GatherTile kTile>() { gather_grid<kTile, 2, true>(plan.gather, a, b, bias, target); });
  } else {
    visit_tile<kOtherTiles>(plan.tile, [&]<GatherTile kTile>() {
      plan.gather.stride == 1 ? gather_grid<kTile, 1, false>(plan.gather, a, b, bias, target)
                              : gather_grid<kTile, 2, false>(plan.gather, a, b, bias, target);
    });
  }
  if (plan.splits() == 1) return target.values();
  const Floats& workspace = target.values();
  const SplitSums sums{.workspace = workspace.data(),
                       .numel = plan.numel(),
                       .splits = plan.splits(),
                       .bias = bias.empty() ? nullptr : bias.data(),
                       .outs = static_cast<int>(bias.size())};
  Floats result(numel);
  for (std::size_t i = 0; i < numel; ++i) result[i] = sum_of_splits(sums, static_cast<int>(i));
  return result;
}

}  // namespace tessera::core_conv_walk
