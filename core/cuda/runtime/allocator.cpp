#include "core/cuda/runtime/allocator.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/device/memory_backend.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

// cudaMalloc fails on a thread that records a graph, unless the thread has chosen the relaxed capture mode.
class RelaxedCapture {
 public:
  RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

void* take_segment(std::size_t bytes) {
  const RelaxedCapture relaxed;
  void* segment = nullptr;
  const cudaError_t status = cudaMalloc(&segment, bytes);
  if (status == cudaSuccess) return segment;
  forget_error();
  if (status != cudaErrorMemoryAllocation) check(status, "cuda memory");
  return nullptr;
}

void give_segment(void* segment) {
  const RelaxedCapture relaxed;
  // cudaFree waits for the device. At process exit the driver may be gone; no later launch must report that error.
  if (cudaFree(segment) != cudaSuccess) forget_error();
}

BlockPool::Segments main_segments() {
  const char* const asked = std::getenv("TESSERA_POOL");
  return asked != nullptr && std::string_view(asked) == "0" ? BlockPool::Segments::own : BlockPool::Segments::shared;
}

}  // namespace

Allocator::Allocator(Device device) : device_(device), main_(make_pool(main_segments())) {}

Allocator::Pool Allocator::make_pool(BlockPool::Segments segments) {
  const auto sizes = std::make_shared<std::map<void*, std::size_t>>();
  BlockPool::Source source{
      .take =
          [this, sizes](std::size_t bytes) -> void* {
        if (limit_ != 0 && reserved_ + bytes > limit_) return nullptr;
        void* const segment = take_segment(bytes);
        if (segment == nullptr) return nullptr;
        sizes->emplace(segment, bytes);
        reserved_ += bytes;
        return segment;
      },
      .give =
          [this, sizes](void* segment) {
        reserved_ -= sizes->at(segment);
        sizes->erase(segment);
        give_segment(segment);
      }};
  return std::make_shared<BlockPool>(std::move(source), segments);
}

void Allocator::refuse(std::size_t bytes) const {
  const std::string asked = str(device_, ": out of memory: asked for ", bytes, " bytes, ", stats_.in_use, " bytes in use, ",
                                reserved_ - stats_.in_use, " bytes cached, ");
  if (limit_ != 0) throw OutOfMemoryError::at_limit(str(asked, "limit ", limit_, " bytes"));
  std::size_t free = 0;
  std::size_t total = 0;
  static_cast<void>(cudaMemGetInfo(&free, &total));
  throw OutOfMemoryError::at_limit(str(asked, free, " of ", total, " bytes of the GPU free"));
}

const Allocator::Pool& Allocator::pool_of_this_thread() const {
  return recorded_ && recorder_ == std::this_thread::get_id() ? recorded_ : main_;
}

void* Allocator::take(BlockPool& pool, std::size_t bytes) {
  void* block = pool.allocate(bytes);
  if (block != nullptr) return block;
  main_->trim();
  return pool.allocate(bytes);
}

void* Allocator::allocate(std::size_t bytes) {
  static_cast<void>(stream_of(device_));  // makes the device current
  const std::lock_guard lock(mutex_);
  const Pool& pool = pool_of_this_thread();
  void* const block = take(*pool, bytes);
  if (block == nullptr) refuse(bytes);
  if (pool != main_) of_graphs_.emplace(block, pool);
  stats_.in_use += pool->size_of(block);
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  if (record_ != nullptr) record_->push_back(stats_.in_use);
  return block;
}

void Allocator::release(void* block) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = of_graphs_.find(block);
  const Pool pool = found == of_graphs_.end() ? main_ : found->second;
  if (found != of_graphs_.end()) of_graphs_.erase(found);
  stats_.in_use -= pool->size_of(block);
  pool->release(block);
}

MemoryStats Allocator::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats = stats_;
  stats.cached = reserved_ - stats_.in_use;
  stats.limit = limit_;
  return stats;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.in_use;
}

void Allocator::set_limit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  if (limit_ != 0 && reserved_ > limit_) main_->trim();
}

void Allocator::record(std::vector<std::size_t>* in_use) {
  const std::lock_guard lock(mutex_);
  record_ = in_use;
}

void Allocator::trim() {
  const std::lock_guard lock(mutex_);
  main_->trim();
}

std::shared_ptr<BlockPool> Allocator::begin_pool() {
  const std::lock_guard lock(mutex_);
  recorder_ = std::this_thread::get_id();
  return recorded_ = make_pool(BlockPool::Segments::shared);
}

void Allocator::end_pool() {
  const std::lock_guard lock(mutex_);
  recorded_ = nullptr;
}

Allocator& allocator_of(Device device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& allocators = *new std::map<int, Allocator>;
  const std::lock_guard lock(mutex);
  return allocators.try_emplace(device.index(), device).first->second;
}

void* take_storage(std::size_t bytes, Device device) { return allocator_of(device).allocate(bytes); }
void release_storage(void* block, std::size_t, Device device) noexcept { allocator_of(device).release(block); }
MemoryStats storage_stats(Device device) { return allocator_of(device).stats(); }
void reset_storage_peak(Device device) { allocator_of(device).reset_peak(); }
void limit_storage(std::size_t bytes, Device device) { allocator_of(device).set_limit(bytes); }
void record_in_use(std::vector<std::size_t>* in_use, Device device) { allocator_of(device).record(in_use); }

}  // namespace tessera::cuda
