// Factorises one convolution at several ranks and prints what each costs and how far it is from the dense weight.
// The error of random weights falls slowly; trained ones compress better. Expected output:
//   dense: 18432 parameters
//   ranks out=8 in=4: 928 parameters, relative error 0.951
//   ranks out=16 in=8: 2432 parameters, relative error 0.888
//   ranks out=32 in=16: 7168 parameters, relative error 0.725
//   ranks out=48 in=24: 14208 parameters, relative error 0.503
//   ranks out=64 in=32: 23552 parameters, relative error 0.000
#include <cstdio>
#include <exception>

#include "core/linalg/relative_error.h"
#include "layers/tucker2_conv2d.h"

namespace {

std::int64_t count_parameters(tessera::Module& module) {
  std::int64_t count = 0;
  for (const tessera::NamedParameter& named : tessera::named_parameters(module)) count += named.parameter->value().numel();
  return count;
}

int run() {
  using namespace tessera;
  Conv2d dense({.in = 32, .out = 64, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  dense.reset_parameters(1);
  std::printf("dense: %lld parameters\n", static_cast<long long>(count_parameters(dense)));
  double error = 1;
  for (const Tucker2Ranks ranks : {Tucker2Ranks{8, 4}, {16, 8}, {32, 16}, {48, 24}, {64, 32}}) {
    const auto factored = Tucker2Conv2d::from_dense(dense, ranks);
    const double now = linalg::relative_error(factored->dense_weight(), dense.weight().value());
    std::printf("ranks out=%lld in=%lld: %lld parameters, relative error %.3f\n", static_cast<long long>(ranks.out),
                static_cast<long long>(ranks.in), static_cast<long long>(count_parameters(*factored)), now);
    if (now > error) return 1;
    error = now;
  }
  return error < 1e-3 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compress_tucker: %s\n", error.what());
    return 1;
  }
}
