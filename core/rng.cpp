#include "core/rng.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/device/dispatch.h"
#include "core/rng_backend.h"

namespace tessera {
namespace {

// FNV-1a; a zero byte between the parts keeps ("ab", "c") and ("a", "bc") apart.
std::uint64_t hash_bytes(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash * 0x100000001b3u;
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void check_contiguous(const char* name, const Tensor& target) {
  TESSERA_CHECK(target.is_contiguous(), ShapeError, name, ": target is not contiguous: ", describe(target));
}

}  // namespace

RngStream::RngStream(std::uint64_t seed, std::string_view path, std::string_view purpose)
    : key(mix(hash_bytes(hash_bytes(0xcbf29ce484222325u ^ mix(seed + 0x9e3779b97f4a7c15u), path), purpose))) {}

std::uint32_t random_u32(RngStream stream, std::uint64_t step, std::uint64_t index) {
  return random_words(stream, step, index / 4)[index % 4];
}

float random_uniform(RngStream stream, std::uint64_t step, std::uint64_t index) {
  return to_unit_float(random_u32(stream, step, index));
}

std::int64_t random_below(RngStream stream, std::uint64_t step, std::uint64_t index, std::int64_t bound) {
  TESSERA_CHECK(bound >= 1, InternalError, "random_below: bound is ", bound);
  return below(random_u32(stream, step, index), bound);
}

void fill_uniform(const Tensor& target, RngStream stream, double low, double high, std::uint64_t step) {
  check_contiguous("fill_uniform", target);
  TESSERA_BACKEND(target.device(), draw_uniform, target, stream, low, high, step);
}

void fill_normal(const Tensor& target, RngStream stream, double mean, double stddev, std::uint64_t step) {
  check_contiguous("fill_normal", target);
  TESSERA_BACKEND(target.device(), draw_normal, target, stream, mean, stddev, step);
}

std::vector<std::int64_t> random_permutation(RngStream stream, std::uint64_t step, std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = count - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(random_below(stream, step, static_cast<std::uint64_t>(i), i + 1))]);
  }
  return order;
}

}  // namespace tessera
