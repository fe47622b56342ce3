#include "core/cuda/runtime/block_pool.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/support/rounding.h"

namespace tessera::cuda {
namespace {

constexpr std::size_t kSmallSegment = std::size_t{2} << 20;
constexpr std::size_t kLargeSegment = std::size_t{20} << 20;
constexpr std::size_t kWholeSegment = std::size_t{10} << 20;  // blocks of this size or more get a segment of their size

}  // namespace

std::size_t BlockPool::rounded(std::size_t bytes) noexcept {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 4 / kAlignment * kAlignment;
  return bytes > kMost ? kMost : std::max(kAlignment, round_up(bytes, kAlignment));
}

std::size_t BlockPool::segment_for(std::size_t size) noexcept {
  if (size <= kSmall) return kSmallSegment;
  return size < kWholeSegment ? kLargeSegment : round_up(size, kSmallSegment);
}

BlockPool::~BlockPool() {
  for (const auto& [at, segment] : segments_) source_.give(at);
}

void BlockPool::insert_free(char* at, Block block) {
  free_.emplace(at, block);
  sizes(block.segment).emplace(block.size, at);
}

void BlockPool::erase_free(Blocks::iterator block) {
  sizes(block->second.segment).erase({block->second.size, block->first});
  free_.erase(block);
}

char* BlockPool::add_segment(std::size_t size) {
  const std::size_t bytes = segment_for(size);
  auto* const at = static_cast<char*>(source_.take(bytes));
  if (at == nullptr) return nullptr;
  segments_.emplace(at, Segment{bytes, size <= kSmall});
  reserved_ += bytes;
  insert_free(at, {bytes, at});
  return at;
}

void* BlockPool::allocate_own(std::size_t bytes) {
  const std::size_t size = std::max(bytes, std::size_t{1});
  auto* const at = static_cast<char*>(source_.take(size));
  if (at == nullptr) return nullptr;
  segments_.emplace(at, Segment{size, false});
  used_.emplace(at, Block{size, at});
  reserved_ += size;
  in_use_ += size;
  return at;
}

void BlockPool::release_own(Blocks::iterator block) {
  source_.give(block->first);
  segments_.erase(block->first);
  reserved_ -= block->second.size;
  in_use_ -= block->second.size;
  used_.erase(block);
}

void* BlockPool::allocate(std::size_t bytes) {
  if (kind_ == Segments::own) return allocate_own(bytes);
  const std::size_t size = rounded(bytes);
  auto& candidates = by_size_[size <= kSmall ? 0 : 1];
  auto best = candidates.lower_bound({size, nullptr});
  if (best == candidates.end()) {
    if (add_segment(size) == nullptr) return nullptr;
    best = candidates.lower_bound({size, nullptr});
  }
  const auto found = free_.find(best->second);
  char* const at = found->first;
  const Block whole = found->second;
  erase_free(found);
  if (whole.size > size) insert_free(at + size, {whole.size - size, whole.segment});
  used_.emplace(at, Block{size, whole.segment});
  in_use_ += size;
  return at;
}

void BlockPool::release(void* block) {
  const auto found = used_.find(static_cast<char*>(block));
  if (kind_ == Segments::own) return release_own(found);
  char* at = found->first;
  Block joined = found->second;
  used_.erase(found);
  in_use_ -= joined.size;
  const auto next = free_.find(at + joined.size);
  if (next != free_.end() && next->second.segment == joined.segment) {
    joined.size += next->second.size;
    erase_free(next);
  }
  const auto after = free_.lower_bound(at);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->second.segment == joined.segment && before->first + before->second.size == at) {
      at = before->first;
      joined.size += before->second.size;
      erase_free(before);
    }
  }
  insert_free(at, joined);
}

void BlockPool::trim() {
  for (auto at = segments_.begin(); at != segments_.end();) {
    const auto block = free_.find(at->first);
    if (block == free_.end() || block->second.size != at->second.size) {
      ++at;
      continue;
    }
    erase_free(block);
    source_.give(at->first);
    reserved_ -= at->second.size;
    at = segments_.erase(at);
  }
}

}  // namespace tessera::cuda
