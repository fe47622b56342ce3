// Caching allocator of a GPU's memory. Everything runs on one stream in order, so a freed block may be given out again at once:
// who gets it runs behind who gave it. While a graph is recorded, blocks come from a pool that the graph owns: its kernels
// keep their addresses. Blocks from before are not kept for it: what it reads of them has an owner for as long as it is replayed.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
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

  // Blocks come from a pool of their own until end_pool(). Its memory goes back when the returned pointer and every block
  // taken from it are gone.
  std::shared_ptr<BlockPool> begin_pool();
  void end_pool();

 private:
  using Pool = std::shared_ptr<BlockPool>;
  Pool make_pool();
  void* take(std::size_t bytes);
  [[noreturn]] void refuse(std::size_t bytes) const;

  Device device_;
  mutable std::mutex mutex_;
  std::atomic<std::size_t> reserved_ = 0;  // of all pools; a graph may give its own back on any thread
  Pool main_;
  Pool current_;
  std::unordered_map<void*, Pool> of_graphs_;  // blocks that are not of main_
  MemoryStats stats_;
  std::size_t limit_ = 0;
  std::vector<std::size_t>* record_ = nullptr;
};

// The device's allocator; never destroyed, so that storages in static objects may outlive main.
Allocator& allocator_of(Device device);

}  // namespace tessera::cuda
