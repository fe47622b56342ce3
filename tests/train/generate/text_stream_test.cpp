#include "train/generate/text_stream.h"

#include <gtest/gtest.h>

#include "train/data/text/byte_tokenizer.h"

namespace tessera::testing {
namespace {

std::vector<TokenId> bytes_of(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

// What each token gives out.
std::vector<std::string> streamed(std::string_view before, std::string_view text) {
  std::vector<std::string> pieces;
  TextStream stream(std::make_shared<ByteTokenizer>(), bytes_of(before), [&](std::string_view piece) { pieces.back() += piece; });
  for (const TokenId id : bytes_of(text)) {
    pieces.emplace_back();
    stream.add(id);
  }
  pieces.emplace_back();
  stream.end();
  return pieces;
}

TEST(TextStream, GivesOutWholeCharacters) {
  EXPECT_EQ(streamed("", "a\xC3\xA9z"), (std::vector<std::string>{"a", "", "\xC3\xA9", "z", ""}));
  EXPECT_EQ(streamed("", "\xF0\x9F\x98\x80"), (std::vector<std::string>{"", "", "", "\xF0\x9F\x98\x80", ""}));
}

TEST(TextStream, ThePromptIsNotGivenOut) {
  EXPECT_EQ(streamed("To be", " or"), (std::vector<std::string>{" ", "o", "r", ""}));
  EXPECT_EQ(streamed("\xC3", "\xA9"), (std::vector<std::string>{"\xA9", ""})) << "a character that the prompt began";
}

TEST(TextStream, WhatNeverBecomesACharacterComesAtTheEnd) {
  EXPECT_EQ(streamed("", "a\xE2\x82"), (std::vector<std::string>{"a", "", "", "\xE2\x82"}));
  EXPECT_EQ(streamed("", "\x80\x80\x80\x80"), (std::vector<std::string>{"\x80", "\x80", "\x80", "\x80", ""}))
      << "no begun sequence";
}

TEST(TextStream, WholeCharacters) {
  EXPECT_EQ(whole_characters(""), 0U);
  EXPECT_EQ(whole_characters("ab"), 2U);
  EXPECT_EQ(whole_characters("a\xE2\x82"), 1U);
  EXPECT_EQ(whole_characters("a\xEF\xBF\xBD"), 1U) << "what a tokenizer makes of a begun character";
}

}  // namespace
}  // namespace tessera::testing
