#include "core/nn/attention_cache.h"

#include "core/support/error.h"

namespace tessera {

AttentionCache::AttentionCache(std::int64_t capacity) : capacity_(capacity) {
  TESSERA_CHECK(capacity >= 1, ConfigError, "attention_cache: capacity is ", capacity, "; needs at least 1");
}

AttentionCache::Seen AttentionCache::append(std::string_view path, const Tensor& k, const Tensor& v) {
  TESSERA_CHECK(k.rank() == 4 && k.shape() == v.shape() && k.dtype() == v.dtype(), ShapeError, "attention_cache: '", path,
                "' appends k ", describe(k), " and v ", describe(v), "; needs twice [batch, positions, kv_heads, width]");
  const std::int64_t end = length_ + k.dim(1);
  TESSERA_CHECK(end <= capacity_, ShapeError, "attention_cache: '", path, "' appends ", k.dim(1), " positions behind ", length_,
                "; the capacity is ", capacity_);
  const Shape whole{k.dim(0), capacity_, k.dim(2), k.dim(3)};
  auto found = layers_.find(path);
  if (found == layers_.end()) {
    const auto room = [&] { return Tensor::empty(whole, k.dtype(), k.device()); };
    found = layers_.emplace(std::string(path), Layer{room(), room()}).first;
  }
  Layer& layer = found->second;
  TESSERA_CHECK(layer.k.shape() == whole && layer.k.dtype() == k.dtype() && layer.k.device() == k.device(), ShapeError,
                "attention_cache: '", path, "' appends k ", describe(k), ", the cache is ", describe(layer.k),
                "; all but the positions must be as before");
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
