#include "core/io/protobuf.h"

#include <gtest/gtest.h>

namespace tessera::protobuf {
namespace {

// The examples of the format's documentation, and the encoding of a negative number.
TEST(Protobuf, WritesFields) {
  EXPECT_EQ(whole_number(1, 150), "\x08\x96\x01");
  EXPECT_EQ(whole_number(1, -1), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(part(2, "testing"), "\x12\x07testing");
  EXPECT_EQ(part(3, whole_number(1, 150)), "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(head_of_part(16, 300), "\x82\x01\xac\x02") << "fields from 16 on and sizes from 128 on take two bytes";
  EXPECT_EQ(real(2, 0.5f), std::string("\x15\0\0\0\x3f", 5));
  EXPECT_EQ(real(1, 1.0), std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
}

}  // namespace
}  // namespace tessera::protobuf
