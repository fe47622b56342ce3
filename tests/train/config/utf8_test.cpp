#include "train/config/utf8.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Utf8, TakesWellFormedSequences) {
  for (const char* text : {"", "abc", "\u00e9", "\u20ac", "\U0001f600", "\U0010ffff", "\ud7ff", "\ue000"}) {
    EXPECT_EQ(find_invalid_utf8(text), std::string_view::npos) << text;
  }
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("ab\xff"
                              "c\xff"),
            2u);
  EXPECT_EQ(find_invalid_utf8("\x80"), 0u);
  EXPECT_EQ(find_invalid_utf8("a\xc0\x80"), 1u) << "overlong";
  EXPECT_EQ(find_invalid_utf8("a\xe0\x9f\xbf"), 1u) << "overlong";
  EXPECT_EQ(find_invalid_utf8("a\xf0\x8f\xbf\xbf"), 1u) << "overlong";
  EXPECT_EQ(find_invalid_utf8("a\xed\xa0\x80"), 1u) << "surrogate";
  EXPECT_EQ(find_invalid_utf8("a\xf4\x90\x80\x80"), 1u) << "above U+10FFFF";
  EXPECT_EQ(find_invalid_utf8("a\xe2\x82"), 1u) << "cut short";
  EXPECT_EQ(find_invalid_utf8("a\xe2\x82z"), 1u);
}

TEST(Utf8, ReplacesWhatIsNone) {
  EXPECT_EQ(valid_utf8("a\xff\u00e9\n\xe2\x82"), "a?\u00e9\n??");
  EXPECT_EQ(printable("a\xff\u00e9\n\x1b[2J\x7f"), "a?\u00e9??[2J?");
}

}  // namespace
}  // namespace tessera
