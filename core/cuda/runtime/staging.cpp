#include "core/device/staging.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/handle.h"
#include "core/device/transfer_stats.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

using Event = UniqueHandle<cudaEvent_t, cudaEventDestroy>;
using PinnedMemory = UniqueHandle<void*, cudaFreeHost>;

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "staging");
  return Event(event);
}

PinnedMemory pin(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes > 0) check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "staging: pinned memory");
  return PinnedMemory(memory);
}

// One tensor of a slot: its pinned memory on the host and its target on the device.
struct Place {
  PinnedMemory host;
  Tensor device;
  std::int64_t rows = 0;  // rows of the batch that it holds
};

struct Slot {
  std::vector<Place> places;
  Event copied;  // recorded on the copy stream: host memory may be written again, device memory may be read
  Event released;  // recorded on the kernels' stream: device memory may be written again
};

class Ring final : public StagingRing {
 public:
  Ring(Device device, std::span<const StagedTensor> layout, int slots) : device_(device) {
    for (int i = 0; i < slots; ++i) {
      Slot slot;
      for (const StagedTensor& tensor : layout) {
        Tensor target = Tensor::empty(tensor.shape, tensor.dtype, device);
        PinnedMemory host = pin(target.bytes());
        slot.places.push_back({std::move(host), std::move(target)});
      }
      slot.copied = make_event();
      slot.released = make_event();
      // Queued kernels of the memory's previous owner may still use it.
      check(cudaEventRecord(slot.released.get(), stream_of(device)), "staging");
      slots_.push_back(std::move(slot));
    }
  }

  // Waits for the copies, because the memory must outlive them. No kernel waits for the copies of batches that nobody took.
  ~Ring() override {
    for (const Slot& slot : slots_) static_cast<void>(cudaEventSynchronize(slot.copied.get()));
  }

  void push(std::span<const Tensor> batch) override {
    const std::size_t in_use = pushed_ - taken_ + (taken_ > 0 ? 1 : 0);
    TESSERA_CHECK(in_use < slots_.size(), InternalError, "staging: push with ", in_use, " of ", slots_.size(), " slots in use");
    Slot& slot = slots_[pushed_ % slots_.size()];
    TESSERA_CHECK(batch.size() == slot.places.size(), InternalError, "staging: a batch of ", batch.size(), " tensors, needs ",
                  slot.places.size());
    for (std::size_t i = 0; i < batch.size(); ++i) check_fits(batch[i], slot.places[i].device);
    check(cudaEventSynchronize(slot.copied.get()), "staging");
    const cudaStream_t copies = copy_stream_of(device_);
    check(cudaStreamWaitEvent(copies, slot.released.get(), 0), "staging");
    for (std::size_t i = 0; i < batch.size(); ++i) begin_copy(batch[i], slot.places[i], copies);
    check(cudaEventRecord(slot.copied.get(), copies), "staging");
    ++pushed_;
  }

  std::vector<Tensor> take() override {
    TESSERA_CHECK(taken_ < pushed_, InternalError, "staging: take without a push");
    const cudaStream_t kernels = stream_of(device_);
    if (taken_ > 0) check(cudaEventRecord(slots_[(taken_ - 1) % slots_.size()].released.get(), kernels), "staging");
    const Slot& slot = slots_[taken_++ % slots_.size()];
    check(cudaStreamWaitEvent(kernels, slot.copied.get(), 0), "staging");
    std::vector<Tensor> batch;
    for (const Place& place : slot.places) batch.push_back(place.device.slice(0, 0, place.rows));
    return batch;
  }

  // No kernel reads the slots of dropped batches, so the earlier release of each slot still holds.
  void drop() override { pushed_ = taken_; }

  int slots() const noexcept override { return static_cast<int>(slots_.size()); }

 private:
  static void check_fits(const Tensor& source, const Tensor& target) {
    const bool fits = source.rank() == target.rank() && source.rank() > 0 && source.dtype() == target.dtype() &&
                      source.dim(0) <= target.dim(0) && source.shape().erase(0) == target.shape().erase(0);
    TESSERA_CHECK(fits && source.is_contiguous() && source.device().is_cpu(), InternalError, "staging: a batch has ",
                  describe(source), ", needs at most ", describe(target));
  }

  static void begin_copy(const Tensor& source, Place& place, cudaStream_t copies) {
    place.rows = source.dim(0);
    if (source.bytes() == 0) return;
    std::memcpy(place.host.get(), source.raw(), source.bytes());
    count_transfer(Transfer::host_to_device);
    check(cudaMemcpyAsync(place.device.raw(), place.host.get(), source.bytes(), cudaMemcpyHostToDevice, copies), "staging");
  }

  Device device_;
  std::vector<Slot> slots_;
  std::size_t pushed_ = 0;  // batches pushed so far, without those that were dropped
  std::size_t taken_ = 0;
};

}  // namespace

std::unique_ptr<StagingRing> staging_ring(Device device, std::span<const StagedTensor> layout, int slots) {
  return std::make_unique<Ring>(device, layout, slots);
}

}  // namespace tessera::cuda
