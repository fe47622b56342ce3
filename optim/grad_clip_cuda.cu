#include "core/cuda/kernel/multi_tensor.cuh"
#include "core/cuda/kernel/reduce.cuh"
#include "core/ops/operands.h"
#include "optim/grad_clip.h"

namespace tessera::cuda {
namespace {

template <class T>
struct ClipEntry {
  T* values;
  double* partial;  // partial sums of the tensor's blocks
  std::int64_t count;
  bool packs;
};

constexpr unsigned kFinalThreads = 1024;

template <class T>
__global__ void __launch_bounds__(kManyThreads) squared_sum_kernel(const __grid_constant__ Many<ClipEntry<T>> many) {
  ThreadShare share;
  const ClipEntry<T>& entry = find_entry(many, share);
  T values[kManyItems];
  load_share<kManyWidth<T>>(entry.values, share, values);
  double sum = 0;
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) sum += static_cast<double>(values[j]) * static_cast<double>(values[j]);
  const double total = block_reduce<kManyThreads>(sum, Plus());
  if (threadIdx.x == 0) entry.partial[share.begin / kManyChunk] = total;
}

__global__ void __launch_bounds__(kFinalThreads) norm_kernel(const double* partial, std::int64_t count, double* norm) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kFinalThreads) sum += partial[i];
  const double total = block_reduce<kFinalThreads>(sum, Plus());
  if (threadIdx.x == 0) *norm = sqrt(total);
}

template <class T>
__global__ void __launch_bounds__(kManyThreads)
    scale_to_norm_kernel(const __grid_constant__ Many<ClipEntry<T>> many, const double* norm, double max_norm) {
  const double ratio = max_norm / (*norm + 1e-6);
  if (ratio >= 1) return;  // a NaN ratio must reach the gradients
  ThreadShare share;
  const ClipEntry<T>& entry = find_entry(many, share);
  T values[kManyItems];
  load_share<kManyWidth<T>>(entry.values, share, values);
#pragma unroll
  for (int j = 0; j < kManyItems; ++j) values[j] *= static_cast<T>(ratio);
  store_share<kManyWidth<T>>(entry.values, share, values);
}

std::int64_t blocks_of(const Tensor& tensor) { return (tensor.numel() + kManyChunk - 1) / kManyChunk; }

// Block numbers run through all tensors in order, whatever their dtype.
template <class T>
std::vector<ClipEntry<T>> entries_of(std::span<const Tensor> tensors, double* partial) {
  std::vector<ClipEntry<T>> entries;
  for (const Tensor& tensor : tensors) {
    check_real("clip_grad_norm", tensor);
    if (tensor.dtype() == dtype_of<T>) {
      entries.push_back({tensor.data<T>(), partial, tensor.numel(), takes_packs<T>({tensor.raw()})});
    }
    if (partial != nullptr) partial += blocks_of(tensor);
  }
  return entries;
}

template <class T>
void sum_squares(std::span<const Tensor> tensors, double* partial, Device device) {
  const auto entries = entries_of<T>(tensors, partial);
  for_each_many(std::span<const ClipEntry<T>>(entries), [&](const Many<ClipEntry<T>>& many, unsigned blocks) {
    launch("global_norm", device, {dim3(blocks), dim3(kManyThreads)}, squared_sum_kernel<T>, many);
  });
}

template <class T>
void scale(std::span<const Tensor> tensors, const Tensor& norm, double max_norm) {
  const auto entries = entries_of<T>(tensors, nullptr);
  const double* const from = norm.data<double>();
  for_each_many(std::span<const ClipEntry<T>>(entries), [&](const Many<ClipEntry<T>>& many, unsigned blocks) {
    launch("scale_to_norm", norm.device(), {dim3(blocks), dim3(kManyThreads)}, scale_to_norm_kernel<T>, many, from, max_norm);
  });
}

}  // namespace

void global_norm(std::span<const Tensor> tensors, const Tensor& norm) {
  std::int64_t blocks = 0;
  for (const Tensor& tensor : tensors) blocks += blocks_of(tensor);
  const Tensor partial = Tensor::empty({blocks}, DType::f64, norm.device());
  sum_squares<float>(tensors, partial.data<double>(), norm.device());
  sum_squares<double>(tensors, partial.data<double>(), norm.device());
  const double* const from = partial.data<double>();
  launch("global_norm", norm.device(), {dim3(1), dim3(kFinalThreads)}, norm_kernel, from, blocks, norm.data<double>());
}

void scale_to_norm(std::span<const Tensor> tensors, const Tensor& norm, double max_norm) {
  scale<float>(tensors, norm, max_norm);
  scale<double>(tensors, norm, max_norm);
}

}  // namespace tessera::cuda
