#include "tests/support/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "core/cpu/allocator.h"
#include "core/device/precision.h"
#include "core/rng.h"

namespace tessera::testing {
namespace {

constexpr double kMargin = 0.05;
constexpr std::int64_t kOffAlignment = 61;  // in elements: not a multiple of any vector size
constexpr std::size_t kPoisonedLarge = 4 << 20;  // one block, from which larger blocks of an op are cut
constexpr int kPoisonedBlocks = 12;  // of each small size; an op and its backward take fewer

Tensor random_tensor(const OpInput& input, RngStream stream, DType dtype) {
  const Tensor single = Tensor::empty(input.shape, DType::f32);
  fill_uniform(single, stream, input.low, input.high);
  for (std::int64_t i = 0; i < single.numel(); ++i) {
    float& value = single.data<float>()[i];
    const double distance = static_cast<double>(value) - input.avoid;
    if (std::abs(distance) < kMargin) value = static_cast<float>(input.avoid + (distance < 0 ? -kMargin : kMargin));
  }
  const Tensor rounded = single.to(dtype);
  return input.parameter ? rounded.to(parameter_dtype(dtype)) : rounded;
}

}  // namespace

std::vector<Tensor> make_inputs(const OpCase& op_case, DType dtype, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const OpInput& input : op_case.inputs) {
    const RngStream stream(seed, op_case.name, str("input ", inputs.size()));
    inputs.push_back(input.indices.empty() ? random_tensor(input, stream, dtype) : Tensor::from(input.indices, input.shape));
  }
  return inputs;
}

Tensor scattered(const Tensor& x) {
  if (x.rank() == 0) return x;
  Shape roomy = x.shape();
  std::vector<int> reversed(static_cast<std::size_t>(x.rank()));
  for (int axis = 0; axis < x.rank(); ++axis) {
    roomy.set(axis, x.shape()[x.rank() - 1 - axis] + 1);
    reversed[static_cast<std::size_t>(axis)] = x.rank() - 1 - axis;
  }
  const double gap = is_floating(x.dtype()) ? std::numeric_limits<double>::quiet_NaN() : -1.0;
  const Tensor buffer = Tensor::full({kOffAlignment + roomy.numel()}, gap, x.dtype(), x.device());
  Tensor view = buffer.slice(0, kOffAlignment, buffer.numel()).reshape(roomy).permute(reversed);
  for (int axis = 0; axis < x.rank(); ++axis) view = view.slice(axis, 0, x.shape()[axis]);
  view.copy_from(x);
  return view;
}

void poison_free_memory(unsigned char byte) {
  // Cached memory is given back first. What remains of it is between blocks in use.
  const std::size_t limit = memory_stats(Device::cpu()).limit;
  set_memory_limit(Device::cpu(), 1);
  set_memory_limit(Device::cpu(), limit);
  std::vector<std::unique_ptr<Storage>> owners;
  const auto poison = [&](std::size_t bytes) {
    owners.push_back(std::make_unique<Storage>(bytes, Device::cpu()));
    std::memset(owners.back()->data(), byte, bytes);
  };
  for (std::size_t cached = memory_stats(Device::cpu()).cached, before = cached + 1; cached < before;) {
    poison(cpu::Allocator::kLeastInArena);
    before = std::exchange(cached, memory_stats(Device::cpu()).cached);
  }
  for (std::size_t bytes = 64; bytes < cpu::Allocator::kLeastInArena; bytes += 64) {
    for (int i = 0; i < kPoisonedBlocks; ++i) poison(bytes);
  }
  poison(kPoisonedLarge);
}

}  // namespace tessera::testing
