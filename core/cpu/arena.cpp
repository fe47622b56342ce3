#include "core/cpu/arena.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "core/support/rounding.h"

namespace tessera::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSegment = std::size_t{256} << 20;  // address space; its bytes use memory only from their first use

// Maps address space that begins on a huge page; null on failure. Requests huge pages: activations are read from end to end, and
// in a virtual machine every address that misses the TLB costs twice.
char* map_pages(std::size_t size) {
  void* const mapped = ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  const std::size_t skipped = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (skipped != 0) ::munmap(begin, skipped);
  ::munmap(begin + skipped + size, kHugePage - skipped);
  ::madvise(begin + skipped, size, MADV_HUGEPAGE);  // only a request: a kernel without huge pages refuses it
  return begin + skipped;
}

// Returns the pages that lie entirely in [begin, end) to the system.
void drop_pages(char* begin, char* end) noexcept {
  constexpr std::uintptr_t kPage = 4096;
  const auto first = round_up(reinterpret_cast<std::uintptr_t>(begin), kPage);
  const auto last = reinterpret_cast<std::uintptr_t>(end) / kPage * kPage;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

// Unpoisons first: the next user of the addresses does not know what AddressSanitizer was told about them.
void unmap(char* begin, std::size_t size) noexcept {
  ASAN_UNPOISON_MEMORY_REGION(begin, size);
  ::munmap(begin, size);
}

}  // namespace

Arena::~Arena() {
  for (const auto& [begin, segment] : segments_) unmap(begin, segment.size);
}

void Arena::insert(char* at, const Block& block) {
  const auto place = by_size_.emplace(block.size, at).first;
  try {
    free_.emplace(at, block);
  } catch (...) {
    by_size_.erase(place);
    throw;
  }
  free_bytes_ += block.size;
  resident_bytes_ += block.resident;
}

void Arena::erase(Blocks::iterator block) {
  by_size_.erase({block->second.size, block->first});
  free_bytes_ -= block->second.size;
  resident_bytes_ -= block->second.resident;
  free_.erase(block);
}

void* Arena::take(std::size_t size) {
  const auto found = by_size_.lower_bound({size, nullptr});
  if (found == by_size_.end()) return nullptr;
  const auto place = free_.find(found->second);
  const auto& [at, block] = *place;
  const std::size_t rest = block.size - size;
  // The rest is entered first: if that runs out of memory, nothing has changed yet.
  if (rest != 0) insert(at + size, {rest, std::min(block.resident, rest)});
  char* const taken = at;
  erase(place);
  return taken;
}

Arena::Segments::iterator Arena::segment_of(char* block) { return std::prev(segments_.upper_bound(block)); }

Arena::Segments::iterator Arena::add_segment(std::size_t size) {
  for (const std::size_t wanted : {std::max(kSegment, round_up(size, kHugePage)), round_up(size, kHugePage)}) {
    if (wanted < size) return segments_.end();  // more bytes than there are addresses
    char* const begin = map_pages(wanted);
    if (begin == nullptr) continue;
    try {
      return segments_.emplace(begin, Segment{wanted, 0}).first;
    } catch (...) {
      unmap(begin, wanted);
      throw;
    }
  }
  return segments_.end();
}

// Takes `size` bytes at the end of the used part of the segment, including a free block there. Null if they do not fit.
char* Arena::cut_behind(Segments::iterator segment, std::size_t size) {
  auto& [begin, extent] = *segment;
  char* const end = begin + extent.used;
  auto last = free_.lower_bound(end);
  const bool has_last =
      last != free_.begin() && std::prev(last)->first >= begin && std::prev(last)->first + std::prev(last)->second.size == end;
  char* const block = has_last ? std::prev(last)->first : end;
  if (static_cast<std::size_t>(begin + extent.size - block) < size) return nullptr;
  if (has_last) erase(std::prev(last));
  extent.used = static_cast<std::size_t>(block - begin) + size;
  return block;
}

void* Arena::grow(std::size_t size) {
  for (auto segment = segments_.begin(); segment != segments_.end(); ++segment) {
    if (char* const block = cut_behind(segment, size)) return block;
  }
  const auto added = add_segment(size);
  return added == segments_.end() ? nullptr : cut_behind(added, size);
}

void Arena::give(void* block, std::size_t size) {
  char* const begin = static_cast<char*>(block);
  insert(begin, {size, size});
  auto merged = free_.find(begin);
  const auto absorb_next = [&](Blocks::iterator at) {
    const auto next = std::next(at);
    if (next == free_.end() || at->first + at->second.size != next->first || segments_.contains(next->first)) return;
    auto place = by_size_.extract({at->second.size, at->first});  // the joined block reuses this node: nothing here can fail
    const Block absorbed = next->second;
    erase(next);
    at->second.size += absorbed.size;
    at->second.resident += absorbed.resident;
    free_bytes_ += absorbed.size;
    resident_bytes_ += absorbed.resident;
    place.value() = {at->second.size, at->first};
    by_size_.insert(std::move(place));
  };
  absorb_next(merged);
  if (merged != free_.begin() && !segments_.contains(merged->first)) absorb_next(std::prev(merged));
}

void Arena::trim() noexcept {
  for (auto block = free_.begin(); block != free_.end();) {
    const auto at = block++;
    Block& free = at->second;
    if (free.resident != 0) drop_pages(at->first, at->first + free.size);
    resident_bytes_ -= std::exchange(free.resident, 0);
    const auto segment = segment_of(at->first);
    if (at->first + free.size == segment->first + segment->second.used) {
      segment->second.used -= free.size;
      erase(at);
    }
  }
  std::erase_if(segments_, [](const auto& entry) {
    const auto& [begin, segment] = entry;
    if (segment.used == 0) unmap(begin, segment.size);
    return segment.used == 0;
  });
}

}  // namespace tessera::cpu
