#include "core/support/hash.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

// The value that xxHash publishes for XXH3_128bits of no bytes with seed 0.
TEST(Xxh3, MatchesThePublishedValueOfNothing) { EXPECT_EQ(xxh3_128(""), "99aa06d3014798d86001c324468d497f"); }

TEST(Xxh3, OneBitChangesTheHash) { EXPECT_NE(xxh3_128("tessera"), xxh3_128("tesserb")); }

TEST(Xxh3, PiecesHashAsTheWhole) {
  std::string bytes;
  for (int i = 0; i < 5003; ++i) bytes += static_cast<char>(i * 31);
  for (const std::size_t piece : {1, 7, 257, 5003}) {
    Xxh3Stream stream;
    for (std::size_t at = 0; at < bytes.size(); at += piece) stream.update(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(stream.hex(), xxh3_128(bytes)) << "pieces of " << piece;
  }
  EXPECT_EQ(Xxh3Stream().hex(), xxh3_128(""));
}

}  // namespace
}  // namespace tessera
