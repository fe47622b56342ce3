// Caching allocator of a GPU's memory. Everything runs on one stream in order, so a freed block may be given out again at once:
// the next user's work runs after the last one's. While a thread records a graph, its blocks come from a pool that the graph
// owns: the graph's kernels keep their addresses. Blocks allocated before the recording are not kept for the graph: those that
// it reads have owners for as long as it is replayed. Other threads' blocks come from the main pool meanwhile. Under
// TESSERA_POOL=0 each block of the main pool is memory of its own, for compute-sanitizer.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/cuda/runtime/block_pool.h"
#include "core/device/device.h"
#include "core/storage.h"

namespace tessera::cuda {

class Allocator {
 public:
  explicit Allocator(Device device);

  // Throws OutOfMemoryError naming the device, the bytes asked, in use and cached, and what the GPU or the limit has.
  void* allocate(std::size_t bytes);
  void release(void* block) noexcept;
  MemoryStats stats() const;
  void reset_peak();
  void set_limit(std::size_t bytes);
  void record(std::vector<std::size_t>* in_use);

  // Gives segments back that hold no block.
  void trim();

  // This thread's blocks come from a pool of their own until end_pool(). Its memory goes back when the returned pointer and every
  // block taken from it are gone. One thread at a time.
  std::shared_ptr<BlockPool> begin_pool();
  void end_pool();

 private:
  using Pool = std::shared_ptr<BlockPool>;
  Pool make_pool(BlockPool::Segments segments);
  const Pool& pool_of_this_thread() const;
  void* take(BlockPool& pool, std::size_t bytes);
  [[noreturn]] void refuse(std::size_t bytes) const;

  Device device_;
  mutable std::mutex mutex_;
  std::atomic<std::size_t> reserved_ = 0;  // of all pools; a graph may give its own back on any thread
  Pool main_;
  Pool recorded_;  // null where no graph is recorded
  std::thread::id recorder_;
  std::unordered_map<void*, Pool> of_graphs_;  // blocks that are not of main_
  MemoryStats stats_;
  std::size_t limit_ = 0;
  std::vector<std::size_t>* record_ = nullptr;
};

// The device's allocator; never destroyed, so that storages in static objects may outlive main.
Allocator& allocator_of(Device device);

}  // namespace tessera::cuda
