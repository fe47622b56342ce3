// Large blocks cut from large pieces of address space. What a network frees in one size serves its next layer in another: free
// neighbours become one block again, and the smallest that is large enough is cut. Pages go back to the system in trim() only.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace tessera::cpu {

class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The three may throw std::bad_alloc: nothing has changed then, but a block given is lost to the arena.
  // `size` is a multiple of 64, as are the addresses. Takes bytes that were in use before, or null; ties go to the lowest.
  void* take(std::size_t size);
  // Takes bytes that never were in use; null when the system has no more.
  void* grow(std::size_t size);
  void give(void* block, std::size_t size);
  // Gives the pages of free blocks back to the system; what lies between blocks in use stays free.
  void trim() noexcept;

  std::size_t free_bytes() const noexcept { return free_bytes_; }  // that take() could serve, in pieces
  // An upper bound on the free bytes that have pages. trim() leaves 0.
  std::size_t resident_bytes() const noexcept { return resident_bytes_; }

 private:
  struct Block {
    std::size_t size;
    std::size_t resident;  // an upper bound: nobody knows where in the block they lie
  };
  struct Segment {
    std::size_t size;
    std::size_t used;  // what lies behind it was never handed out, or was given back
  };
  using Blocks = std::map<char*, Block>;
  using Segments = std::map<char*, Segment>;

  Segments::iterator segment_of(char* block);
  Segments::iterator add_segment(std::size_t size);
  char* cut_behind(Segments::iterator segment, std::size_t size);
  void insert(char* at, const Block& block);
  void erase(Blocks::iterator block);

  Segments segments_;
  Blocks free_;  // by address, never two that touch within a segment
  std::set<std::pair<std::size_t, char*>> by_size_;  // the same blocks
  std::size_t free_bytes_ = 0;
  std::size_t resident_bytes_ = 0;
};

}  // namespace tessera::cpu
