#include "core/cpu/allocator.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

#include "core/cpu/machine_memory.h"
#include "core/support/error.h"

namespace tessera::cpu {
namespace {

bool in_arena(std::size_t size) { return size >= Allocator::kLeastInArena; }

// Under AddressSanitizer (elsewhere the macros do nothing): only the requested bytes may be touched, and none after release.
void hand_out(void* block, std::size_t bytes, [[maybe_unused]] std::size_t size) {
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + bytes, size - bytes);
}

void give_back(void* block, [[maybe_unused]] std::size_t size) {
  ASAN_UNPOISON_MEMORY_REGION(block, size);
  std::free(block);
}

// Blocks of the arena touch each other. A block that the sanitizer guards needs unrequested bytes after it.
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kGuard = Allocator::kAlignment;
#else
constexpr std::size_t kGuard = 0;
#endif

std::size_t with_guard(std::size_t size) { return in_arena(size) ? size + kGuard : size; }

}  // namespace

std::size_t Allocator::reserved(std::size_t bytes) noexcept {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2 / kAlignment * kAlignment;
  if (bytes > kMost) return kMost;
  return std::max<std::size_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
}

Allocator::~Allocator() { free_cached(); }

void Allocator::free_cached() {
  traffic_.returned += cached();
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) give_back(block, size);
  }
  free_.clear();
  in_lists_ = 0;
  arena_.trim();
}

void Allocator::refuse(std::size_t bytes, std::size_t size) const {
  const std::string asked = str("cpu: out of memory: asked for ", bytes, " bytes, ", stats_.in_use, " bytes in use, ");
  if (beyond_limit(stats_.in_use + size)) throw OutOfMemoryError::at_limit(str(asked, "limit ", limit_, " bytes"));
  throw OutOfMemoryError(asked + "the system has no more");
}

void* Allocator::take_cached(std::size_t size) {
  if (in_arena(size)) return arena_.take(with_guard(size));
  const auto found = free_.find(size);
  if (found == free_.end() || found->second.empty()) return nullptr;
  void* const block = found->second.back();
  found->second.pop_back();
  in_lists_ -= size;
  return block;
}

void* Allocator::from_system(std::size_t size) {
  void* const block = in_arena(size) ? arena_.grow(with_guard(size)) : std::aligned_alloc(kAlignment, size);
  if (block != nullptr) traffic_.taken += with_guard(size);
  return block;
}

void Allocator::keep(void* block, std::size_t size) {
  if (in_arena(size)) return arena_.give(block, with_guard(size));
  free_[size].push_back(block);
  in_lists_ += size;
}

// Returns a block, or null. Cached blocks go back to the system if they are in the way.
void* Allocator::obtain(std::size_t size) {
  if (beyond_limit(stats_.in_use + size)) return nullptr;
  if (void* const block = take_cached(size)) return block;
  if (beyond_limit(stats_.in_use + cached() + size)) free_cached();
  if (void* const block = from_system(size)) return block;
  if (cached() == 0) return nullptr;
  free_cached();
  return from_system(size);
}

void* Allocator::allocate(std::size_t bytes) {
  const std::size_t size = reserved(bytes);
  const std::lock_guard lock(mutex_);
  const std::size_t recorded = record_ != nullptr ? record_->size() : 0;
  void* block = nullptr;
  try {
    if (record_ != nullptr) record_->push_back(stats_.in_use + size);
    block = obtain(size);
  } catch (const std::bad_alloc&) {  // no memory for the bookkeeping: no block was taken
  }
  if (block == nullptr) {
    if (record_ != nullptr) record_->resize(recorded);
    refuse(bytes, size);
  }
  stats_.in_use += size;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  // Pages that went back to the system count again once their block is reused.
  if (beyond_limit(stats_.in_use + cached())) free_cached();
  hand_out(block, bytes, with_guard(size));
  return block;
}

void Allocator::release(void* block, std::size_t bytes) noexcept {
  const std::size_t size = reserved(bytes);
  const std::lock_guard lock(mutex_);
  stats_.in_use -= size;
  try {
    keep(block, size);
    ASAN_POISON_MEMORY_REGION(block, with_guard(size));
  } catch (...) {
    if (!in_arena(size)) give_back(block, size);  // no memory to keep track of it
  }
}

MemoryStats Allocator::stats() const {
  const std::lock_guard lock(mutex_);
  MemoryStats stats = stats_;
  stats.cached = cached();
  stats.limit = limit_;
  return stats;
}

Allocator::Traffic Allocator::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

void Allocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  stats_.peak = stats_.in_use;
}

void Allocator::record(std::vector<std::size_t>* in_use) {
  const std::lock_guard lock(mutex_);
  record_ = in_use;
}

void Allocator::set_limit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
  if (beyond_limit(stats_.in_use + cached())) free_cached();
}

Allocator& allocator() {
  static Allocator& instance = *[] {
    auto* const made = new Allocator;
    made->set_limit(machine_memory());
    return made;
  }();
  return instance;
}

}  // namespace tessera::cpu
