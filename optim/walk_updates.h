// What the update kernels of the CPU share. Templates: operands are those of one optimiser.
#pragma once

#include <cstdint>
#include <span>

#include "core/cpu/parallel_tensors.h"
#include "core/tensor.h"
#include "optim/norm_blocks.h"

namespace tessera::cpu {

// update.operator()<T>(operands) gives what is called with (begin, end) for parts that together cover the weight. `norm` becomes
// that of all gradients unless it is undefined.
template <class Operands, class Update>
void walk_updates(std::span<const Operands> operands, const Tensor& norm, const char* name, const Update& update) {
  const auto weight_of = [](const Operands& o) -> const Tensor& { return o.weight; };
  NormBlocks blocks;
  if (norm.defined()) {
    for (const Operands& o : operands) blocks.add_tensor(o.grad.numel());
  }
  parallel_tensors(operands, kGrain, weight_of, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    const Operands& o = operands[i];
    dispatch_real(o.weight.dtype(), name, [&]<class T>() {
      const auto part = update.template operator()<T>(o);
      norm.defined() ? blocks.walk(i, o.grad.template data<T>(), o.grad.numel(), begin, end, part) : part(begin, end);
    });
  });
  if (norm.defined()) *norm.template data<double>() = blocks.norm();
}

}  // namespace tessera::cpu
