// Keys and values of a network's attention layers while it generates, so that positions that were seen are not computed again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace tessera {

// A forward whose context has the cache reads the positions from length() on: each attention layer appends its keys and values
// of these, and advance() follows once the whole forward is done.
class AttentionCache {
 public:
  // For sequences of up to `capacity` positions. Memory is taken as layers append, twice as much each time that it is full.
  explicit AttentionCache(std::int64_t capacity);

  std::int64_t capacity() const noexcept { return capacity_; }
  std::int64_t length() const noexcept { return length_; }  // positions that every layer holds

  struct Seen {
    Tensor k, v;  // [batch, length() + t, kv_heads, width], views
  };
  // Copies k and v [batch, t, kv_heads, width] behind the positions that the layer at this path holds, and gives all of them.
  // Throws ShapeError beyond the capacity, and where k and v are not alike or not as they were before.
  Seen append(std::string_view path, const Tensor& k, const Tensor& v);
  // Throws InternalError where a layer appended another number of positions.
  void advance(std::int64_t positions);

 private:
  struct Layer {
    Tensor k, v;  // [batch, room, kv_heads, width]
    std::int64_t end = 0;  // of what it holds
  };
  // Room for `end` positions, with what the first length() of them hold.
  void grow(Layer& layer, const Tensor& like, std::int64_t end) const;

  std::int64_t capacity_;
  std::int64_t length_ = 0;
  std::map<std::string, Layer, std::less<>> layers_;
};

}  // namespace tessera
