// Which blocks a fused Tucker-2 convolution runs in, and whether it should: an analytical model of its time against that of three
// convolutions. Compare the TDC paper's tiling model (Xiang et al., PPoPP 2023, section 5), which counts waves and traffic; here
// the halo's recomputation and the latency of a staged slice are counted too, since small images live on them. Needs no GPU: a
// chip is its Limits.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cuda/runtime/limits.h"
#include "core/cuda/tucker_conv/shapes.h"
#include "core/device/device.h"
#include "core/fused_tucker_conv.h"
#include "core/support/extent.h"

namespace tessera::cuda {

enum class TuckerMath { f32, tf32, bf16, f16 };

struct TuckerConvShape {
  std::int64_t images = 1, h = 1, w = 1;
  std::int64_t in = 1, rank_in = 1, rank_out = 1, out = 1;
  Extent kernel{3, 3}, stride{1, 1}, padding{1, 1};
  bool in_factor = true, out_factor = true;
  TuckerMath math = TuckerMath::f32;

  CoreAxis rows() const;
  CoreAxis columns() const;
};

// Block shapes that kernels exist for.
std::span<const BlockShape> chain_blocks(TuckerMath math);

// The forward pass, or the one that takes grad_y to grad_x.
ChainShape chain_shape(const TuckerConvShape& conv, bool backward, int tile_h, int tile_w);
// Correlations that give the weight gradients: of the core, the in factor and the out factor, as far as there are such.
std::vector<CorrelationShape> correlation_shapes(const TuckerConvShape& conv);

struct ChainCandidate {
  BlockShape block{};
  int tile_h = 1, tile_w = 1;
  int shared = 0;          // bytes of a block
  std::int64_t blocks = 0;
  double waves = 0;        // rounds of resident blocks
  double flops = 0;        // recomputed halos and unused parts of blocks included
  double bytes = 0;        // that blocks stage through the L2 cache
  double seconds = 0;      // predicted
};

// The predicted time of one pass in tiles as `shape` has them.
ChainCandidate predict(const ChainShape& shape, const BlockShape& block, TuckerMath math, const Limits& limits);

// All that fit the chip.
std::vector<ChainCandidate> chain_candidates(const TuckerConvShape& conv, bool backward, const Limits& limits);

struct Estimate {
  double flops = 0, bytes = 0, seconds = 0;
};
// Three convolutions, each by the library or by core_conv/, with their gradients in training.
Estimate unfused_estimate(const TuckerConvShape& conv, bool training, const Limits& limits);
// The weight gradients by `walkers` blocks a group.
Estimate correlations_estimate(const TuckerConvShape& conv, int walkers, const Limits& limits);
int walkers_for(const TuckerConvShape& conv, const Limits& limits);

struct TuckerPlan {
  ChainCandidate forward;
  ChainCandidate backward;  // in training
  int walkers = 1;          // likewise
  double seconds = 0;
};

struct TuckerPlanning {
  std::optional<TuckerPlan> plan;  // none: the kernels do not take the shape
  bool wins = false;               // predicted to be faster than three convolutions, by more than the predictions err
  Estimate unfused;
  std::string reason;              // why not, where it does not win
};

// The candidates of least predicted time.
TuckerPlanning plan_tucker_conv(const TuckerConvShape& conv, bool training, const Limits& limits);

// The kernels for `conv` in the plan's blocks and tiles, which chain_candidates() lists. `wins`: what predicted_to_win() says.
// With the CUDA backend only.
std::shared_ptr<const FusedTuckerConv> fused_tucker_conv(const TuckerConvShape& conv, const TuckerPlan& plan, bool wins,
                                                         Device device);

}  // namespace tessera::cuda
