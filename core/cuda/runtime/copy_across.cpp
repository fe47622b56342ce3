#include <cuda_runtime_api.h>

#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/device/device_work.h"
#include "core/device/transfer_stats.h"
#include "core/support/error.h"
#include "core/tensor_backend.h"

namespace tessera::cuda {
namespace {

void copy(const Tensor& source, const Tensor& target, Device device, cudaMemcpyKind kind) {
  TESSERA_CHECK(!recording_graph(), InternalError, "to: from ", source.device(), " to ", target.device(),
                " while a graph is recorded");
  if (source.bytes() == 0) return;
  check(cudaMemcpyAsync(target.raw(), source.raw(), source.bytes(), kind, stream_of(device)), "to");
}

// Copies through the host, because two GPUs need not see each other.
void copy_between(const Tensor& source, const Tensor& target) {
  const Tensor host = Tensor::empty(source.shape(), source.dtype());
  copy_across(source, host);
  copy_across(host, target);
}

}  // namespace

// Waits in both directions: an asynchronous copy may still be reading its pageable memory when the call returns.
void copy_across(const Tensor& source, const Tensor& target) {
  if (source.device().is_cuda() && target.device().is_cuda()) return copy_between(source, target);
  const bool to_gpu = target.device().is_cuda();
  const Device device = to_gpu ? target.device() : source.device();
  count_transfer(to_gpu ? Transfer::host_to_device : Transfer::device_to_host);
  copy(source, target, device, to_gpu ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
  wait(device, "to");
}

}  // namespace tessera::cuda
