// Batches on their way from the host to a GPU, beside its kernels: a ring of slots, each of pinned host memory and of device
// tensors, allocated once. Copies run on a stream of their own; events make kernels wait for the copy that they read, and a copy
// wait for the kernels that read its slot before.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace tessera {

// One tensor of the largest batch.
struct StagedTensor {
  Shape shape;
  DType dtype = DType::f32;
};

class StagingRing {
 public:
  virtual ~StagingRing() = default;
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // Begins to copy a batch: host tensors, contiguous, one for each of the layout, of its dtype and no longer than it along axis
  // 0. They may change as soon as it returns. At most slots() batches may be on their way or in use: waits, uncounted, until the
  // copy that the slot held before has run, which bounds how far the host runs ahead and reads nothing of the device.
  virtual void push(std::span<const Tensor> batch) = 0;

  // The oldest batch that was pushed, on the device: work that is queued before the next take() may read it. Does not wait.
  virtual std::vector<Tensor> take() = 0;

  // Forgets what was pushed and not taken.
  virtual void drop() = 0;

  virtual int slots() const noexcept = 0;

 protected:
  StagingRing() = default;
};

// Throws DeviceError on the CPU, which needs no copies.
std::unique_ptr<StagingRing> make_staging_ring(Device device, std::span<const StagedTensor> layout, int slots);

namespace cpu {
std::unique_ptr<StagingRing> staging_ring(Device device, std::span<const StagedTensor> layout, int slots);
}
namespace cuda {
std::unique_ptr<StagingRing> staging_ring(Device device, std::span<const StagedTensor> layout, int slots);
}

}  // namespace tessera
