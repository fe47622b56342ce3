// Rows of memory that are fetched into the second-level cache a few lines at a time, while something else is computed. Always
// inline, because files for several instruction sets use it.
#pragma once

#include <cstdint>

namespace tessera::cpu {

class FetchAhead {
 public:
  static constexpr int kMost = 8;  // calls of add() that count

  // `rows` rows of `bytes` bytes, `stride` bytes apart.
  [[gnu::always_inline]] void add(const void* at, std::int64_t stride, std::int64_t bytes, std::int64_t rows) {
    if (rows > 0 && bytes > 0 && count_ < kMost) kinds_[count_++] = {static_cast<const char*>(at), stride, bytes, rows};
  }

  // The next line of those that are left; null behind the last one.
  [[gnu::always_inline]] const char* next() {
    if (at_ == count_) return nullptr;
    Rows& rows = kinds_[at_];
    const char* const line = rows.at + done_;
    done_ += kLine;
    if (done_ < rows.bytes) return line;
    done_ = 0;
    rows.at += rows.stride;
    if (--rows.rows == 0) ++at_;
    return line;
  }

  [[gnu::always_inline]] void fetch(int lines) {
    for (const char* line = nullptr; lines > 0 && (line = next()) != nullptr; --lines) __builtin_prefetch(line, 0, 2);
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
