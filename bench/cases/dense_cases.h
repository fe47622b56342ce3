// Matrix products and convolutions: our ops as a user calls them against the best direct oneDNN call sequence.
#pragma once

#include "bench/rivals/onednn_rival.h"

namespace tessera::bench {

struct DenseCase {
  std::string op;  // matmul, conv2d
  std::string shape;
  std::string pass;
  double flops = 0;
  Contestant ours;
  std::vector<Contestant> rivals;  // from and to our tensors
  std::vector<Contestant> blocked;  // layouts of oneDNN's choice kept: beside the comparison, not part of it
  std::function<void()> spoil;  // fills the rivals' output with NaN, before results are compared
};

// A convolution's forward is one of training: its weights change from call to call, so that both sides lay them out in every one.
DenseCase product_case(const ProductShape& shape);
DenseCase conv_case(ConvPass pass, const ConvShape& shape);

// Uniform in [-1, 1).
Tensor random_tensor(const Shape& shape, std::string_view name, DType dtype = DType::f32, Device device = {});

// Times a case under a DecisionScope of its own. `measure_peak` is called once, just before the turns: a machine's clock moves,
// and the share of the peak is to be of the one beside the case. Throws NumericError when the sides compute different things,
// InternalError where oneDNN has no fast way.
// The line: op, shape, pass, algorithm (of ours), rounds, tessera_ms, rival {name, ms}, ratio (rival / tessera),
// blocked {name, ms}, blocked_ratio, rival_sweep, gflops, peak_share, fma_peak_gflops.
Value measure_dense(const DenseCase& dense, const TurnOptions& turns, const std::function<double()>& measure_peak);

// What the rival's 1024^3 product reaches at best; throws InternalError below 60 % of the peak: no fair rival.
double guarded_rival_gflops(double peak_gflops);

}  // namespace tessera::bench
