// Rows of memory that are fetched into the second-level cache a few lines at a time, while something else is computed. Always
// inline, because files for several instruction sets use it.
#pragma once

#include <cstdint>

namespace tessera::cpu {

class FetchAhead {
 public:
  static constexpr int kMost = 5;  // kinds of rows

  // `rows` rows of `bytes` bytes, `stride` bytes apart.
  [[gnu::always_inline]] void add(const void* at, std::int64_t stride, std::int64_t bytes, std::int64_t rows) {
    if (rows > 0 && bytes > 0) kinds_[count_++] = {static_cast<const char*>(at), stride, bytes, rows};
  }

  // The next lines of those that are left.
  [[gnu::always_inline]] void fetch(int lines) {
    for (; lines > 0 && at_ < count_; --lines) {
      Rows& rows = kinds_[at_];
      __builtin_prefetch(rows.at + done_, 0, 2);
      done_ += kLine;
      if (done_ < rows.bytes) continue;
      done_ = 0;
      rows.at += rows.stride;
      if (--rows.rows == 0) ++at_;
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;  // bytes
  struct Rows {
    const char* at;
    std::int64_t stride, bytes, rows;
  };

  Rows kinds_[kMost] = {};
  int count_ = 0, at_ = 0;
  std::int64_t done_ = 0;  // bytes of the row
};

}  // namespace tessera::cpu
