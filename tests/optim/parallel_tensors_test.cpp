#include <gtest/gtest.h>
#include <omp.h>

#include "optim/builtin.h"
#include "tests/optim/model.h"

namespace tessera {
namespace {

// Weights, then state, after three steps on `threads` threads. Every third weight is masked.
std::vector<std::vector<double>> trained(const OptimizerConfig& config, DType dtype, int threads) {
  omp_set_num_threads(threads);
  testing::Holder model;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t size = i % 10 == 9 ? 30'011 : i % 7 == 3 ? 0 : 1 + 37 * i;
    const auto role = i % 2 == 0 ? ParameterRole::weight : ParameterRole::norm;
    const Tensor start = testing::random_tensor({size}, dtype, 50 + static_cast<std::uint64_t>(i));
    Parameter& parameter = model.add_parameter(str("p", i), start, role);
    if (i % 3 != 0) continue;
    const Tensor mask = Tensor::full({size}, 1, DType::u8);
    if (size > 1) mask.slice(0, size / 3, size / 2).fill(0);
    parameter.set_mask(mask);
  }
  const auto optimizer = make_optimizer(config, named_parameters(model));
  for (std::uint64_t step = 0; step < 3; ++step) {
    testing::set_gradients(model, step);
    optimizer->step(testing::step_state(0.05));
  }
  std::vector<std::vector<double>> all;
  for (const NamedParameter& named : named_parameters(model)) all.push_back(testing::to_doubles(named.parameter->value()));
  for (const auto& [name, tensor] : optimizer->state().tensors) all.push_back(testing::to_doubles(tensor));
  return all;
}

// Threads share one range over all parameters, and the ends of their parts fall anywhere.
TEST(ParallelTensors, UpdateManyParametersToTheSameBitsOnAnyThreadCount) {
  const int before = omp_get_max_threads();
  const std::vector<OptimizerConfig> configs{{SgdConfig{.nesterov = true, .weight_decay = 1e-2}},
                                             {SgdConfig{.momentum = 0, .weight_decay = 1e-2, .decay_norm_bias = false}},
                                             {AdamWConfig{.weight_decay = 0.1}}};
  for (const OptimizerConfig& config : configs) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const auto want = trained(config, dtype, 1);
      for (const int threads : {2, 3, 7}) EXPECT_EQ(trained(config, dtype, threads), want) << threads << " threads, " << dtype;
    }
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace tessera
