#include "core/nn/attention_cache.h"

#include <algorithm>
#include <utility>

#include "core/support/error.h"

namespace tessera {
namespace {

constexpr std::int64_t kFirstRoom = 1024;  // positions

// The shape [batch, positions, kv_heads, width] of x with another number of positions.
Shape with_positions(const Tensor& x, std::int64_t positions) { return {x.dim(0), positions, x.dim(2), x.dim(3)}; }

}  // namespace

AttentionCache::AttentionCache(std::int64_t capacity) : capacity_(capacity) {
  TESSERA_CHECK(capacity >= 1, ConfigError, "attention_cache: capacity is ", capacity, "; needs at least 1");
}

void AttentionCache::grow(Layer& layer, const Tensor& like, std::int64_t end) const {
  const std::int64_t before = layer.k.defined() ? layer.k.dim(1) : 0;
  const std::int64_t room = std::min(capacity_, std::max({kFirstRoom, 2 * before, end}));
  const auto wider = [&](const Tensor& held) {
    const Tensor result = Tensor::empty(with_positions(like, room), like.dtype(), like.device());
    if (before > 0) result.slice(1, 0, length_).copy_from(held.slice(1, 0, length_));
    return result;
  };
  Tensor k = wider(layer.k), v = wider(layer.v);  // both tensors grow or, if memory runs out, neither
  layer.k = std::move(k);
  layer.v = std::move(v);
}

AttentionCache::Seen AttentionCache::append(std::string_view path, const Tensor& k, const Tensor& v) {
  TESSERA_CHECK(k.rank() == 4 && k.shape() == v.shape() && k.dtype() == v.dtype(), ShapeError, "attention_cache: '", path,
                "' appends k ", describe(k), " and v ", describe(v), "; needs twice [batch, positions, kv_heads, width]");
  const std::int64_t end = length_ + k.dim(1);
  TESSERA_CHECK(end <= capacity_, ShapeError, "attention_cache: '", path, "' appends ", k.dim(1), " positions behind ", length_,
                "; the capacity is ", capacity_);
  auto found = layers_.find(path);
  if (found == layers_.end()) {
    Layer fresh;
    grow(fresh, k, end);
    found = layers_.emplace(std::string(path), std::move(fresh)).first;
  }
  Layer& layer = found->second;
  TESSERA_CHECK(
      with_positions(k, layer.k.dim(1)) == layer.k.shape() && layer.k.dtype() == k.dtype() && layer.k.device() == k.device(),
      ShapeError, "attention_cache: '", path, "' appends k ", describe(k), ", the cache is ", describe(layer.k),
      "; all but the positions must be as before");
  if (end > layer.k.dim(1)) grow(layer, k, end);
  layer.k.slice(1, length_, end).copy_from(k);
  layer.v.slice(1, length_, end).copy_from(v);
  layer.end = end;
  return {layer.k.slice(1, 0, end), layer.v.slice(1, 0, end)};
}

void AttentionCache::advance(std::int64_t positions) {
  for (const auto& [path, layer] : layers_) {
    TESSERA_CHECK(layer.end == length_ + positions, InternalError, "attention_cache: '", path, "' holds ", layer.end,
                  " positions; ", length_, " and ", positions, " more were expected");
  }
  length_ += positions;
}

}  // namespace tessera
