#include <cuda_runtime_api.h>

#include "core/cuda/context.h"
#include "core/cuda/error.h"
#include "core/device_work.h"
#include "core/error.h"
#include "core/tensor_backend.h"
#include "core/transfer_stats.h"

namespace tessera::cuda {
namespace {

void copy(const Tensor& source, const Tensor& target, Device device, cudaMemcpyKind kind) {
  TESSERA_CHECK(!recording_graph(), InternalError, "to: from ", source.device(), " to ", target.device(),
                " while a graph is recorded");
  if (source.bytes() == 0) return;
  check(cudaMemcpyAsync(target.raw(), source.raw(), source.bytes(), kind, stream_of(device)), "to");
}

// Through the host: two GPUs need not see each other.
void copy_between(const Tensor& source, const Tensor& target) {
  const Tensor host = Tensor::empty(source.shape(), source.dtype());
  copy_across(source, host);
  copy_across(host, target);
}

}  // namespace

void copy_across(const Tensor& source, const Tensor& target) {
  if (source.device().is_cuda() && target.device().is_cuda()) return copy_between(source, target);
  if (target.device().is_cuda()) {  // CUDA has read pageable memory when it returns
    count_transfer(Transfer::host_to_device);
    return copy(source, target, target.device(), cudaMemcpyHostToDevice);
  }
  count_transfer(Transfer::device_to_host);
  copy(source, target, source.device(), cudaMemcpyDeviceToHost);
  wait(source.device(), "to");
}

}  // namespace tessera::cuda
