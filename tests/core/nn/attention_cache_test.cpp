#include "core/nn/attention_cache.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  const Tensor x = Tensor::empty(shape);
  fill_normal(x, RngStream(seed, "test", "cache"), 0, 1);
  return x;
}

std::vector<float> values(const Tensor& x) { return x.contiguous().to_vector<float>(); }

TEST(AttentionCache, GivesAllPositionsSoFar) {
  AttentionCache cache(7);
  const Tensor k = drawn({2, 5, 3, 4}, 1), v = drawn({2, 5, 3, 4}, 2);
  for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, 1}, {3, 2}}) {
    for (const char* path : {"a", "b"}) {  // each path has its own cache
      const Tensor& other = path[0] == 'a' ? k : v;
      const AttentionCache::Seen seen =
          cache.append(path, other.slice(1, first, first + count), v.slice(1, first, first + count));
      EXPECT_EQ(values(seen.k), values(other.slice(1, 0, first + count)));
      EXPECT_EQ(values(seen.v), values(v.slice(1, 0, first + count)));
    }
    cache.advance(count);
    EXPECT_EQ(cache.length(), first + count);
  }
}

TEST(AttentionCache, KeepsPositionsAsItsMemoryGrows) {
  constexpr std::int64_t kLast = 5003;
  AttentionCache cache(kLast);
  const Tensor k = drawn({2, kLast, 1, 3}, 1), v = drawn({2, kLast, 1, 3}, 2);
  std::int64_t first = 0;
  for (const std::int64_t count : {1021, 1, 1, 1, 1, 1500, 2477, 1}) {
    const AttentionCache::Seen seen = cache.append("a", k.slice(1, first, first + count), v.slice(1, first, first + count));
    cache.advance(count);
    first += count;
    EXPECT_EQ(values(seen.k), values(k.slice(1, 0, first))) << first;
    EXPECT_EQ(values(seen.v), values(v.slice(1, 0, first))) << first;
  }
  EXPECT_EQ(cache.length(), kLast);
}

TEST(AttentionCache, TakesMemoryForWhatItHolds) {
  AttentionCache cache(std::int64_t{1} << 50);
  const Tensor x = drawn({1, 2, 1, 3}, 1);
  EXPECT_EQ(values(cache.append("a", x, x).k), values(x));
}

TEST(AttentionCache, AForwardThatIsRunAgainReplacesItsPositions) {
  AttentionCache cache(4);
  const Tensor k = drawn({1, 2, 1, 3}, 1), v = drawn({1, 2, 1, 3}, 2);
  cache.append("a", k, v);
  EXPECT_EQ(values(cache.append("a", v, k).k), values(v));
  cache.advance(2);
  EXPECT_EQ(cache.length(), 2);
}

TEST(AttentionCache, RefusesWhatDoesNotFit) {
  EXPECT_EQ(message_of<ConfigError>([] { AttentionCache(0); }), "attention_cache: capacity is 0; needs at least 1");
  AttentionCache cache(4);
  const Tensor two = drawn({1, 2, 1, 3}, 1);
  cache.append("a", two, two);
  EXPECT_EQ(message_of<InternalError>([&] { cache.advance(1); }),
            "attention_cache: 'a' holds 2 positions; 0 and 1 more were expected");
  cache.advance(2);
  const Tensor three = drawn({1, 3, 1, 3}, 1);
  EXPECT_EQ(message_of<ShapeError>([&] { cache.append("a", three, three); }),
            "attention_cache: 'a' appends 3 positions behind 2; the capacity is 4");
  const Tensor other = drawn({2, 1, 1, 3}, 1);
  EXPECT_NE(message_of<ShapeError>([&] { cache.append("a", other, other); }).find("all but the positions must be as before"),
            std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] { cache.append("a", two, three); }).find("needs twice [batch, positions"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
