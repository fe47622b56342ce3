// Caching allocator for host memory. A freed block is kept and handed out again, a small one from the list of its size, a large
// one through the arena; pages do not go back to the system while the limit allows it, because a first touch costs more
// than the kernel that writes the page.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "core/cpu/arena.h"
#include "core/storage.h"

namespace tessera::cpu {

class Allocator {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kLeastInArena = 4096;

  ~Allocator();
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes) noexcept;
  MemoryStats stats() const;
  // Totals since the start, in bytes: of blocks that no free one could serve, and of free blocks that went back to the system.
  // A loop whose memory is kept for it changes neither.
  struct Traffic {
    std::size_t taken = 0;
    std::size_t returned = 0;
    bool operator==(const Traffic&) const = default;
  };
  Traffic traffic() const;
  void reset_peak();
  void set_limit(std::size_t bytes);
  // Appends in_use after every later allocation to `in_use`, until another call; null ends it.
  void record(std::vector<std::size_t>* in_use);

  // Bytes really reserved for a request: the next multiple of 64, at least 64; for more than addresses can count, all that they
  // can, which nobody has.
  static std::size_t reserved(std::size_t bytes) noexcept;

 private:
  [[noreturn]] void refuse(std::size_t bytes, std::size_t size) const;
  void* take_cached(std::size_t size);
  void* from_system(std::size_t size);
  void* obtain(std::size_t size);
  void keep(void* block, std::size_t size);
  void free_cached();
  std::size_t cached() const noexcept { return in_lists_ + arena_.resident_bytes(); }
  bool beyond_limit(std::size_t bytes) const noexcept { return limit_ != 0 && bytes > limit_; }

  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;
  std::size_t in_lists_ = 0;
  Arena arena_;
  MemoryStats stats_;
  Traffic traffic_;
  std::size_t limit_ = 0;
  std::vector<std::size_t>* record_ = nullptr;
};

// The process's host allocator; never destroyed, so that storages in static objects may outlive main.
Allocator& allocator();

}  // namespace tessera::cpu
