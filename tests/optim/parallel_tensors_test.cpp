#include "optim/parallel_tensors_cpu.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <mutex>

#include "optim/builtin.h"
#include "tests/optim/model.h"

namespace tessera {
namespace {

using cpu::parallel_tensors;

const Tensor& itself(const Tensor& tensor) { return tensor; }

TEST(ParallelTensors, VisitsEveryElementOnceInOneRegion) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    std::vector<Tensor> tensors;
    for (const std::int64_t size : {0, 7, 0, 0, 1, 50, 3, 0, 29, 10, 0}) tensors.push_back(Tensor::zeros({size}));
    std::mutex mutex;
    std::vector<std::int64_t> share(static_cast<std::size_t>(threads));
    parallel_tensors(std::span<const Tensor>(tensors), 1, itself, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
      ASSERT_LT(begin, end);
      ASSERT_LE(end, tensors[i].numel());
      const std::lock_guard lock(mutex);
      for (std::int64_t at = begin; at < end; ++at) tensors[i].data<float>()[at] += 1;
      share[static_cast<std::size_t>(omp_get_thread_num())] += end - begin;
    });
    for (const Tensor& tensor : tensors) {
      EXPECT_EQ(tensor.to_vector<float>(), std::vector<float>(static_cast<std::size_t>(tensor.numel()), 1.0f));
    }
    for (const std::int64_t elements : share) EXPECT_EQ(elements, 100 / threads) << "shares are equal";
  }
  omp_set_num_threads(before);
}

// Weights, then state, after three steps of `threads` threads; every third weight is masked.
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

// Threads share one range over all parameters, whose ends fall anywhere.
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

TEST(ParallelTensors, OfNoneIsNothing) {
  const std::vector<Tensor> tensors{Tensor::zeros({0})};
  const auto fail = [](std::size_t, std::int64_t, std::int64_t) { FAIL(); };
  parallel_tensors(std::span<const Tensor>(tensors), 1, itself, fail);
  parallel_tensors(std::span<const Tensor>(), 1, itself, fail);
}

}  // namespace
}  // namespace tessera
