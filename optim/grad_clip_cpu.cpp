#include "core/cpu/parallel_tensors.h"
#include "optim/grad_clip.h"
#include "optim/norm_blocks.h"

namespace tessera::cpu {

namespace {

const Tensor& itself(const Tensor& tensor) { return tensor; }

}  // namespace

void global_norm(std::span<const Tensor> tensors, const Tensor& norm) {
  NormBlocks blocks;
  for (const Tensor& tensor : tensors) blocks.add_tensor(tensor.numel());
  parallel_tensors(tensors, NormBlocks::kBlock, itself, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    dispatch_real(tensors[i].dtype(), "clip_grad_norm", [&]<class T>() {
      blocks.walk(i, tensors[i].data<T>(), tensors[i].numel(), begin, end, [](std::int64_t, std::int64_t) {});
    });
  });
  *norm.data<double>() = blocks.norm();
}

void scale_to_norm(std::span<const Tensor> tensors, const Tensor& norm, double max_norm) {
  const double ratio = max_norm / (*norm.data<double>() + 1e-6);
  // A NaN ratio must reach the gradients.
  if (ratio >= 1) return;
  parallel_tensors(tensors, kGrain, itself, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    dispatch_real(tensors[i].dtype(), "clip_grad_norm", [&]<class T>() {
      T* const values = tensors[i].data<T>();
      const T factor = static_cast<T>(ratio);
#pragma omp simd
      for (std::int64_t at = begin; at < end; ++at) values[at] *= factor;
    });
  });
}

}  // namespace tessera::cpu
