// Blocks of device memory cut from large segments and joined again when they are freed. Knows addresses, and never touches what
// they point at. The caller says where segments come from, so that tests need no GPU. Not for several threads at once.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace tessera::cuda {

class BlockPool {
 public:
  struct Source {
    std::function<void*(std::size_t bytes)> take;  // null when there is no more
    std::function<void(void* segment)> give;  // must not throw
  };

  // Blocks are cut from segments that many share, or each is a segment of the bytes asked, given back when it is released: slow,
  // but what watches the source's memory sees every access beyond a block.
  enum class Segments { shared, own };

  static constexpr std::size_t kAlignment = 512;  // of blocks and of their sizes; vector loads and library workspaces want 256
  static constexpr std::size_t kSmall = std::size_t{1} << 20;  // blocks up to here come from segments of their own kind

  explicit BlockPool(Source source, Segments kind = Segments::shared) : source_(std::move(source)), kind_(kind) {}
  ~BlockPool();  // gives every segment back
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Null when no free block fits and the source has none.
  void* allocate(std::size_t bytes);
  void release(void* block);  // from allocate()
  void trim();  // gives back segments without a block in use

  std::size_t in_use() const noexcept { return in_use_; }
  std::size_t reserved() const noexcept { return reserved_; }  // bytes of all segments
  std::size_t size_of(void* block) const { return used_.at(static_cast<char*>(block)).size; }

  static std::size_t rounded(std::size_t bytes) noexcept;
  // Bytes asked of the source for a block that no free one serves.
  static std::size_t segment_for(std::size_t size) noexcept;

 private:
  struct Block {
    std::size_t size;
    char* segment;
  };
  struct Segment {
    std::size_t size;
    bool small;
  };
  using Blocks = std::map<char*, Block>;

  std::set<std::pair<std::size_t, char*>>& sizes(char* segment) { return by_size_[segments_.at(segment).small ? 0 : 1]; }
  void insert_free(char* at, Block block);
  void erase_free(Blocks::iterator block);
  char* add_segment(std::size_t size);
  void* allocate_own(std::size_t bytes);
  void release_own(Blocks::iterator block);

  Source source_;
  Segments kind_;
  std::map<char*, Segment> segments_;
  Blocks free_;  // by address; two of a segment never touch
  Blocks used_;
  std::set<std::pair<std::size_t, char*>> by_size_[2];  // the free ones, of small and of large segments
  std::size_t in_use_ = 0;
  std::size_t reserved_ = 0;
};

}  // namespace tessera::cuda
