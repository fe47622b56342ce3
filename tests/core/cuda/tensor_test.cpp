// Tensors, their memory and recorded work on a GPU.
#include "core/tensor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <numeric>
#include <string_view>
#include <thread>

#include "core/autograd/accumulate.h"
#include "core/device/device_choice.h"
#include "core/device/memory_history.h"
#include "core/device/step_state.h"
#include "core/device/transfer_stats.h"
#include "core/ops/arithmetic.h"
#include "core/ops/layer_norm.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "tests/support/gpu.h"
#include "tests/support/inputs.h"
#include "tests/support/message_of.h"
#include "tests/support/op_checks.h"

namespace tessera::testing {
namespace {

constexpr DType kAllDTypes[] = {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8};

// Whole numbers that every dtype holds.
Tensor counted(const Shape& shape, DType dtype) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), 0.0f);
  for (float& value : values) value = static_cast<float>(static_cast<int>(value) % 100);
  return Tensor::from(values, shape).to(dtype);
}

// Under TESSERA_POOL=0 freed memory is not cached.
bool pools() {
  const char* const asked = std::getenv("TESSERA_POOL");
  return asked == nullptr || std::string_view(asked) != "0";
}

class CudaTensor : public GpuTest {};

TEST_F(CudaTensor, CrossesAndComesBack) {
  for (const DType dtype : kAllDTypes) {
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7, 13}, Shape{3, 257, 33}}) {
      SCOPED_TRACE(str(dtype, ' ', shape));
      const Tensor x = counted(shape, dtype);
      const Tensor y = x.to(gpu());
      EXPECT_EQ(y.device(), gpu());
      EXPECT_EQ(y.dtype(), dtype);
      EXPECT_TRUE(same_bytes(x, y));
    }
  }
}

TEST_F(CudaTensor, ConvertsAsTheCpuDoes) {
  for (const DType from : kAllDTypes) {
    for (const DType to : kAllDTypes) {
      SCOPED_TRACE(str(from, " to ", to));
      const Tensor x = counted({5, 33}, from);
      EXPECT_TRUE(same_bytes(x.to(gpu()).to(to), x.to(to)));
    }
  }
}

TEST_F(CudaTensor, RoundsToHalfTypesAsTheCpuDoes) {
  const Tensor x = Tensor::empty({4099}, DType::f32);
  fill_normal(x, RngStream(3, "rounding", "values"), 0.0, 1e-4);
  x.data<float>()[0] = std::numeric_limits<float>::infinity();
  x.data<float>()[1] = -std::numeric_limits<float>::infinity();
  x.data<float>()[2] = 1e30f;
  x.data<float>()[3] = -0.0f;
  x.data<float>()[4] = 1e-45f;
  for (const DType dtype : {DType::bf16, DType::f16}) EXPECT_TRUE(same_bytes(x.to(gpu()).to(dtype), x.to(dtype))) << dtype;
}

TEST_F(CudaTensor, CopiesStridedViews) {
  for (const DType dtype : kAllDTypes) {
    SCOPED_TRACE(str(dtype));
    const Tensor x = counted({6, 35, 70}, dtype);
    const Tensor y = x.to(gpu());
    EXPECT_TRUE(same_bytes(y.permute({2, 0, 1}).contiguous(), x.permute({2, 0, 1})));
    EXPECT_TRUE(same_bytes(y.permute({0, 2, 1}).contiguous(), x.permute({0, 2, 1})));
    EXPECT_TRUE(same_bytes(y.slice(2, 3, 68).slice(1, 1, 34).contiguous(), x.slice(2, 3, 68).slice(1, 1, 34)));
    EXPECT_TRUE(same_bytes(y.slice(1, 2, 3).expand({6, 9, 70}).contiguous(), x.slice(1, 2, 3).expand({6, 9, 70})));
    EXPECT_TRUE(same_bytes(scattered(y), x));
  }
}

TEST_F(CudaTensor, FillsOnlyItsElements) {
  for (const DType dtype : kAllDTypes) {
    const Tensor whole = Tensor::zeros({5, 7}, dtype, gpu());
    whole.slice(1, 2, 5).fill(3.0);
    const Tensor expected = Tensor::zeros({5, 7}, dtype);
    expected.slice(1, 2, 5).fill(3.0);
    EXPECT_TRUE(same_bytes(whole, expected)) << dtype;
  }
}

TEST_F(CudaTensor, RandomNumbersAreTheCpus) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const RngStream stream(5, "layer", "weight");
    const Tensor host = Tensor::empty({1031}, dtype);
    const Tensor device = Tensor::empty({1031}, dtype, gpu());
    fill_uniform(host, stream, -0.3, 0.7, 9);
    fill_uniform(device, stream, -0.3, 0.7, 9);
    EXPECT_TRUE(same_bytes(host, device)) << dtype;
  }
}

TEST_F(CudaTensor, RefusesAnotherDevicesOperand) {
  const Tensor on_gpu = Tensor::zeros({2}, DType::f32, gpu());
  EXPECT_EQ(message_of<DeviceError>([&] { on_gpu.copy_from(Tensor::zeros({2})); }),
            "copy_from: source is on cpu, target on cuda:0");
  EXPECT_NE(message_of<DeviceError>([&] { add(Var(on_gpu), Var(Tensor::zeros({2}))); }), "");
}

TEST_F(CudaTensor, CountsWhatCrosses) {
  const Tensor x = counted({9}, DType::f32);
  const TransferStats before = transfer_stats();
  const Tensor y = x.to(gpu());
  y.clone().fill(1.0);
  EXPECT_EQ(transfer_stats().host_to_device, before.host_to_device + 1);
  EXPECT_EQ(transfer_stats().device_to_host, before.device_to_host);
  y.to(Device::cpu());
  EXPECT_EQ(transfer_stats().device_to_host, before.device_to_host + 1);
}

TEST_F(CudaTensor, SaysWhatDoesNotFit) {
  const std::string message = message_of<OutOfMemoryError>([&] { Tensor::empty({std::int64_t{1} << 50}, DType::u8, gpu()); });
  EXPECT_NE(message.find("cuda:0: out of memory: asked for 1125899906842624 bytes"), std::string::npos) << message;
  set_memory_limit(gpu(), std::size_t{64} << 20);
  EXPECT_NE(message_of<OutOfMemoryError>([&] { Tensor::empty({100 << 20}, DType::u8, gpu()); }).find("limit 67108864 bytes"),
            std::string::npos);
  set_memory_limit(gpu(), 0);
}

TEST_F(CudaTensor, MemoryIsKeptForTheNext) {
  const void* const address = Tensor::empty({3 << 20}, DType::u8, gpu()).raw();
  const void* const next = Tensor::empty({3 << 20}, DType::u8, gpu()).raw();
  EXPECT_TRUE(next == address || !pools());
  EXPECT_EQ(memory_stats(gpu()).cached > 0, pools());
  reset_peak_memory(gpu());
  const std::size_t before = memory_stats(gpu()).in_use;
  Tensor::empty({5 << 20}, DType::u8, gpu());
  EXPECT_EQ(memory_stats(gpu()).in_use, before);
  EXPECT_GE(memory_stats(gpu()).peak, before + (5 << 20));
}

class CudaGraph : public GpuTest {};

TEST_F(CudaGraph, ReplaysWhatWasRecorded) {
  const Tensor x = Tensor::zeros({1000}, DType::f32, gpu());
  const Tensor one = Tensor::full({1000}, 1.0, DType::f32, gpu());
  accumulate(x, one);
  const auto graph = record_graph(gpu(), [&] { accumulate(x, one); });
  EXPECT_EQ(x.to_vector<float>()[999], 1.0f);  // nothing ran while it was recorded
  for (int i = 0; i < 3; ++i) graph->replay();
  EXPECT_EQ(x.to_vector<float>()[999], 4.0f);
  EXPECT_EQ(graph->kernels(), 1u);
}

// If a row fits into the registers of a group of threads, one walk over x and grad_y gives all three gradients, followed by a sum
// of the blocks' parts. Asked for one by one, they take a walk each, and the parameters' sum besides. Both hold on a GPU of few
// multiprocessors too, as long as the rows are not too wide for several blocks per column.
TEST_F(CudaGraph, LayerNormsGradientsTakeOneWalk) {
  for (const std::int64_t columns : {64, 255, 768, 1024}) {
    SCOPED_TRACE(columns);
    constexpr std::int64_t kRows = 512;
    const auto full = [&](const Shape& shape) { return Tensor::full(shape, 1.0, DType::f32, gpu()); };
    const Tensor x = full({kRows, columns}), grad_y = full({kRows, columns}), grad_x = full({kRows, columns});
    const Tensor gamma = full({columns}), grad_gamma = full({columns}), grad_beta = full({columns});
    const Tensor mean = full({kRows}), inv_std = full({kRows});
    const auto kernels = [&](const Tensor& of_x, const Tensor& of_gamma, const Tensor& of_beta) {
      const auto work = [&] { cuda::layer_norm_backward(x, grad_y, gamma, mean, inv_std, of_x, of_gamma, of_beta); };
      work();
      return record_graph(gpu(), work)->kernels();
    };
    EXPECT_EQ(kernels(grad_x, grad_gamma, grad_beta), 2u);
    EXPECT_EQ(kernels(grad_x, {}, {}), 1u);
    EXPECT_EQ(kernels({}, grad_gamma, grad_beta), 2u);
  }
}

TEST_F(CudaGraph, KeepsItsMemory) {
  const Tensor x = Tensor::full({4096}, 2.0, DType::f32, gpu());
  Tensor y;
  const auto work = [&] {
    const NoGrad no_grad;
    y = mul_scalar(add(Var(x), Var(x)), 3.0).value();
  };
  work();
  const auto graph = record_graph(gpu(), work);
  graph->replay();
  std::vector<Tensor> others;
  for (int i = 0; i < 50; ++i) others.push_back(Tensor::full({4096}, 77.0, DType::f32, gpu()));
  x.fill(5.0);
  graph->replay();
  EXPECT_EQ(y.to_vector<float>()[17], 30.0f);
  for (const Tensor& other : others) EXPECT_EQ(other.to_vector<float>()[17], 77.0f);
}

TEST_F(CudaGraph, ReadsTheStepStateAtEveryReplay) {
  StepState state(gpu());
  state.set({.step = 1, .lr = 0.5});
  const Tensor seen = Tensor::zeros({sizeof(StepStateData)}, DType::u8, gpu());
  const auto work = [&] {
    state.set_micro_step(3);
    seen.copy_from(state.tensor());
  };
  work();
  const auto graph = record_graph(gpu(), work);
  state.set({.step = 2, .lr = 0.25});
  graph->replay();
  const Tensor host = seen.to(Device::cpu());
  EXPECT_EQ(step_state_data(host).step, 2);
  EXPECT_EQ(step_state_data(host).lr, 0.25);
  EXPECT_EQ(step_state_data(host).micro_step, 3);
}

TEST_F(CudaGraph, RefusesToReadTheDevice) {
  const Tensor x = Tensor::zeros({4}, DType::f32, gpu());
  EXPECT_NE(message_of([&] { record_graph(gpu(), [&] { x.item(); }); }), "");
  const auto graph = record_graph(gpu(), [&] { x.fill(3.0); });  // the failed recording left the device usable
  graph->replay();
  EXPECT_EQ(x.to_vector<float>()[3], 3.0f);
}

TEST_F(CudaGraph, WhatEagerWorkLeftCachedGoesBackBeforeARecording) {
  const auto work = [&] { Tensor::empty({48 << 20}, DType::u8, gpu()).fill(1); };
  work();
  EXPECT_GE(memory_stats(gpu()).cached, pools() ? std::size_t{48} << 20 : 0);
  const auto graph = record_graph(gpu(), work);
  EXPECT_LT(memory_stats(gpu()).cached, std::size_t{90} << 20);  // only the graph's memory
}

// Memory of the graph's pool goes back to the driver. Memory that another thread took meanwhile does not belong to this pool.
TEST_F(CudaGraph, AnotherThreadsMemoryIsNotTheGraphs) {
  auto graph = record_graph(gpu(), [] { std::thread([] { Tensor::empty({48 << 20}, DType::u8, gpu()); }).join(); });
  graph.reset();
  EXPECT_GE(memory_stats(gpu()).cached, pools() ? std::size_t{48} << 20 : 0);
}

TEST_F(CudaGraph, CachedMemoryGoesBackWhileARecordingNeedsIt) {
  Tensor held = Tensor::full({48 << 20}, 1.0, DType::u8, gpu());
  const MemoryStats stats = memory_stats(gpu());
  set_memory_limit(gpu(), stats.in_use + (std::size_t{16} << 20));
  Tensor taken;
  const auto graph = record_graph(gpu(), [&] {
    held = Tensor();
    taken = Tensor::empty({48 << 20}, DType::u8, gpu());
    taken.fill(7);
  });
  set_memory_limit(gpu(), 0);
  graph->replay();
  EXPECT_EQ(taken.to_vector<std::uint8_t>().back(), 7);
}

// Counts the host's calls: short work is called a few times to run and to record it, but never to read the clock again.
TEST_F(CudaGraph, ShortWorkIsTimedByItsReplays) {
  const Tensor x = Tensor::zeros({64}, DType::f32, gpu());
  int runs = 0;
  DeviceClock clock(gpu(), [&] {
    ++runs;
    x.fill(runs);
  });
  EXPECT_GT(clock.seconds(), 0.0);
  const int recorded = runs;
  EXPECT_GT(recorded, 2);
  for (int reading = 0; reading < 3; ++reading) EXPECT_GT(clock.seconds(), 0.0);
  EXPECT_EQ(runs, recorded);
}

TEST(DeviceGraph, IsOfGpus) {
  EXPECT_NE(message_of<DeviceError>([] { record_graph(Device::cpu(), [] {}); }), "");
}

}  // namespace
}  // namespace tessera::testing
