// Checks the core convolution's index arithmetic on the host against the plain loops, and the planner's choices.
#include "bench/tdc_shapes.h"
#include "core/cuda/core_conv/core_conv.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/cpu/reference/conv2d.h"
#include "core/cuda/core_conv/gather.h"
#include "core/cuda/core_conv/weight_gradient.h"
#include "core/support/error.h"
#include "tests/core/cuda/core_conv/walk.h"
#include "tests/support/gpu_limits.h"

namespace tessera {
namespace {

using core_conv_walk::Floats;
using cuda::CoreConvPlan;

constexpr Conv2dPass kPasses[] = {Conv2dPass::forward, Conv2dPass::backward_input, Conv2dPass::backward_weight};

struct Core {
  std::int64_t in, out, h, w;
};

std::vector<Core> tdc_cores() {
  std::vector<Core> cores;
  for (const bench::TdcCore& core : bench::kTdcCores) cores.push_back({core.in, core.out, core.size, core.size});
  return cores;
}

Conv2dGeometry geometry(std::int64_t n, const Core& core, Extent kernel = {3, 3}, std::int64_t stride = 1,
                        Extent padding = {1, 1}) {
  Conv2dOptions options;
  options.stride = {stride, stride};
  options.padding = padding;
  const std::int64_t oh = (core.h + 2 * padding.h - kernel.h) / stride + 1, ow = (core.w + 2 * padding.w - kernel.w) / stride + 1;
  return {n, core.h, core.w, core.in, core.out, kernel.h, kernel.w, oh, ow, options};
}

std::string title_of(Conv2dPass pass, const Conv2dGeometry& g) {
  return str(name_of(pass), ", ", g.n, "x", g.h, "x", g.w, "x", g.in, " -> ", g.oh, "x", g.ow, "x", g.out, ", kernel ", g.kh, "x",
             g.kw, ", stride ", g.options.stride.h, ", padding ", g.options.padding.h, "x", g.options.padding.w);
}

Floats random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

// The operands of one pass and the plain loops' result.
struct Case {
  Case(Conv2dPass pass, const Conv2dGeometry& g) : name(title_of(pass, g)) {
    const std::int64_t x = g.n * g.h * g.w * g.in, y = g.n * g.oh * g.ow * g.out, weights = g.out * g.kh * g.kw * g.in;
    a = random_floats(pass == Conv2dPass::backward_input ? y : x, 1);
    b = random_floats(pass == Conv2dPass::backward_weight ? y : weights, 2);
    if (pass == Conv2dPass::forward) {
      bias = random_floats(g.out, 3);
      expected.resize(static_cast<std::size_t>(y));
      cpu::reference::conv2d_forward<float>(g, a.data(), b.data(), bias.data(), expected.data());
    } else if (pass == Conv2dPass::backward_input) {
      expected.resize(static_cast<std::size_t>(x));
      cpu::reference::conv2d_backward_input<float>(g, a.data(), b.data(), expected.data());
    } else {
      expected.resize(static_cast<std::size_t>(weights));
      cpu::reference::conv2d_backward_weight<float>(g, a.data(), b.data(), expected.data(), nullptr);
    }
  }
  std::string name;
  Floats a, b, bias, expected;
};

void expect_equal(const Case& operands, const CoreConvPlan& plan) {
  const Floats result = core_conv_walk::run(plan, operands.a, operands.b, operands.bias);
  ASSERT_EQ(result.size(), operands.expected.size());
  float largest = 0, error = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    largest = std::max(largest, std::abs(operands.expected[i]));
    const float difference = std::abs(result[i] - operands.expected[i]);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
  }
  EXPECT_LE(error, 1e-5f * largest) << operands.name << " by " << describe(plan);
}

std::vector<CoreConvPlan> candidates(Conv2dPass pass, const Conv2dGeometry& g) {
  std::string reason;
  std::vector<CoreConvPlan> plans = cuda::core_conv_candidates(pass, g, DType::f32, kH100, &reason);
  EXPECT_FALSE(plans.empty()) << title_of(pass, g) << ": " << reason;
  EXPECT_EQ(reason, "");
  return plans;
}

std::string refused(const Conv2dGeometry& g, DType dtype = DType::f32, const cuda::Limits& limits = kH100) {
  std::string reason;
  EXPECT_FALSE(cuda::plan_core_conv(Conv2dPass::forward, g, dtype, limits, &reason)) << title_of(Conv2dPass::forward, g);
  return reason;
}

void expect_fastest_equals(Conv2dPass pass) {
  for (const Core& core : tdc_cores()) {
    const Conv2dGeometry g = geometry(1, core);
    const std::vector<CoreConvPlan> plans = candidates(pass, g);
    ASSERT_FALSE(plans.empty());
    expect_equal(Case(pass, g), plans.front());
  }
}

TEST(CoreConv, ForwardOfTdcShapes) { expect_fastest_equals(Conv2dPass::forward); }
TEST(CoreConv, InputGradientOfTdcShapes) { expect_fastest_equals(Conv2dPass::backward_input); }
TEST(CoreConv, WeightGradientOfTdcShapes) { expect_fastest_equals(Conv2dPass::backward_weight); }

// Every tile with every number of splits it may have, on sizes that no tile divides, with and without copies of four floats.
TEST(CoreConv, EveryCandidateOnOddSizes) {
  const Conv2dGeometry geometries[] = {
      geometry(2, {36, 20, 17, 15}),
      geometry(1, {5, 9, 11, 23}),
      geometry(2, {12, 33, 13, 10}, {3, 3}, 2),
      geometry(1, {7, 40, 16, 9}, {3, 3}, 2, {0, 2}),
      geometry(1, {37, 6, 9, 12}, {2, 3}, 1, {0, 1}),
      geometry(2, {8, 10, 12, 9}, {1, 3}, 2, {0, 0}),
  };
  for (const Conv2dGeometry& g : geometries) {
    for (const Conv2dPass pass : kPasses) {
      const Case operands(pass, g);
      std::set<int> tiles;
      for (const CoreConvPlan& plan : candidates(pass, g)) {
        tiles.insert(plan.tile);
        expect_equal(operands, plan);
      }
      EXPECT_GE(tiles.size(), cuda::core_conv::kOtherTiles.size()) << operands.name;
    }
  }
}

// A quarter of a warp reads 16 bytes for each thread at once, provided that the addresses are in different banks or equal.
template <class Offset>
void expect_no_bank_conflicts(int threads, Offset&& offset) {
  for (int first = 0; first < threads; first += 8) {
    std::map<int, int> of_banks;  // the quad that each set of four banks delivers
    for (int thread = first; thread < std::min(first + 8, threads); ++thread) {
      const int quad = offset(thread) / 4;
      EXPECT_EQ(offset(thread) % 4, 0);
      EXPECT_EQ(of_banks.emplace(quad % 8, quad).first->second, quad) << "thread " << thread;
    }
  }
}

template <class Block>
void expect_no_conflicts_of_gather() {
  expect_no_bank_conflicts(Block::kSizes.threads, [](int thread) { return Block::input_of(thread); });
  expect_no_bank_conflicts(Block::kSizes.threads, [](int thread) { return Block::weight_of(thread); });
}

TEST(CoreConv, SharedMemoryIsReadWithoutBankConflicts) {
  using namespace cuda::core_conv;
  for (int tile = 0; tile < static_cast<int>(kFullTiles.size()); ++tile)
    visit_tile<kFullTiles>(tile, []<GatherTile kTile>() { expect_no_conflicts_of_gather<GatherBlock<kTile, 1, true>>(); });
  for (int tile = 0; tile < static_cast<int>(kOtherTiles.size()); ++tile)
    visit_tile<kOtherTiles>(tile, []<GatherTile kTile>() { expect_no_conflicts_of_gather<GatherBlock<kTile, 2, true>>(); });
  for (int tile = 0; tile < static_cast<int>(kWeightTiles.size()); ++tile) {
    visit_tile<kWeightTiles>(tile, []<WeightTile kTile>() {
      using Block = WeightBlock<kTile, 1>;
      expect_no_bank_conflicts(Block::kSizes.threads, [](int thread) { return Block::input_of(thread); });
      expect_no_bank_conflicts(Block::kSizes.threads, [](int thread) { return Block::gradient_of(thread); });
    });
  }
}

// Shapes where an axis has fewer pixels than the stride, or where a parity of pixels meets no tap, so that its gradient is zero.
TEST(CoreConv, FastestOnEdges) {
  const Conv2dGeometry geometries[] = {
      geometry(1, {1, 1, 3, 3}, {3, 3}, 1, {0, 0}),   geometry(3, {4, 4, 1, 1}),
      geometry(1, {4, 8, 2, 1}, {1, 2}, 2, {0, 1}),   geometry(1, {256, 256, 5, 5}, {3, 1}, 1, {1, 0}),
      geometry(2, {16, 16, 8, 8}, {1, 2}, 2, {0, 0}), geometry(1, {3, 2, 4, 31}, {2, 2}, 2, {2, 2}),
  };
  for (const Conv2dGeometry& g : geometries) {
    for (const Conv2dPass pass : kPasses) {
      const std::vector<CoreConvPlan> plans = candidates(pass, g);
      ASSERT_FALSE(plans.empty());
      expect_equal(Case(pass, g), plans.front());
    }
  }
}

TEST(CoreConv, PlansAllOfTdc) {
  for (const Core& core : tdc_cores()) {
    std::string reason;
    const auto plan = cuda::plan_core_conv(Conv2dPass::forward, geometry(1, core), DType::f32, kH100, &reason);
    ASSERT_TRUE(plan) << reason;
    EXPECT_LE(plan->seconds, plan->library_seconds);
    EXPECT_EQ(reason, "");
  }
}

TEST(CoreConv, LeavesWideLayersToTheLibrary) {
  const std::string reason = refused(geometry(32, {256, 256, 56, 56}));
  EXPECT_EQ(reason.rfind("the library is predicted to be faster: ", 0), 0u) << reason;
  EXPECT_NE(reason.find(" us against "), std::string::npos) << reason;
}

TEST(CoreConv, RefusesWithReasons) {
  const Core core{32, 32, 14, 14};
  EXPECT_EQ(refused(geometry(1, core), DType::bf16), "the dtype is bf16; the kernels of core convolutions take f32");
  EXPECT_EQ(refused(geometry(1, core, {5, 3})), "the kernel is 5x3; the kernels of core convolutions take at most 3x3");
  EXPECT_EQ(refused(geometry(1, core, {1, 1}, 1, {0, 0})), "the kernel is 1x1; that is a matrix product, which the library does");
  EXPECT_EQ(refused(geometry(1, core, {3, 3}, 3)), "the stride is 3x3; the kernels of core convolutions take 1x1 and 2x2");
  EXPECT_EQ(refused(geometry(1, {257, 32, 7, 7})),
            "there are 257 and 32 channels; the kernels of core convolutions take at most 256");
  EXPECT_EQ(refused(geometry(0, core)), "there is nothing to compute: an operand is empty");
  EXPECT_EQ(refused(geometry(1 << 20, {256, 8, 64, 64})),
            "an operand has more elements than 32 bits count; the kernels of core convolutions take fewer");
  Conv2dGeometry grouped = geometry(1, core);
  grouped.options.groups = 2;
  EXPECT_EQ(refused(grouped), "there are 2 groups; the kernels of core convolutions take 1");
  cuda::Limits small = kH100;
  small.shared_per_block = 1024;
  EXPECT_EQ(refused(geometry(1, core), DType::f32, small), "no tile fits the GPU, whose blocks have 1024 bytes of shared memory");
}

TEST(CoreConv, CandidatesAreSortedAndTheirWorkspaceFits) {
  for (const Core& core : tdc_cores()) {
    for (const Conv2dPass pass : kPasses) {
      const Conv2dGeometry g = geometry(1, core);
      const std::int64_t numel = pass == Conv2dPass::forward          ? g.oh * g.ow * g.out
                                 : pass == Conv2dPass::backward_input ? g.h * g.w * g.in
                                                                      : g.out * 9 * g.in;
      const std::vector<CoreConvPlan> plans = candidates(pass, g);
      std::set<std::string> names;
      for (std::size_t i = 0; i < plans.size(); ++i) {
        EXPECT_GT(plans[i].seconds, i > 0 ? plans[i - 1].seconds * (1 - 1e-12) : 0.0);
        EXPECT_EQ(plans[i].numel(), numel);
        EXPECT_EQ(plans[i].workspace(), plans[i].splits() == 1 ? 0u : static_cast<std::size_t>(plans[i].splits() * numel));
        names.insert(describe(plans[i]));
      }
      EXPECT_EQ(names.size(), plans.size());
    }
  }
}

TEST(CoreConv, ChoosesTheSameAgain) {
  for (const Core& core : tdc_cores()) {
    for (const Conv2dPass pass : kPasses) {
      const std::vector<CoreConvPlan> once = candidates(pass, geometry(1, core)), again = candidates(pass, geometry(1, core));
      ASSERT_EQ(once.size(), again.size());
      for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(describe(once[i]), describe(again[i]));
    }
  }
}

}  // namespace
}  // namespace tessera
