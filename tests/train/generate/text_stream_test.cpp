#include "train/generate/text_stream.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "core/support/error.h"
#include "tests/train/data/text/tokenizer_files.h"
#include "train/config/utf8.h"
#include "train/data/text/bpe_tokenizer.h"
#include "train/data/text/byte_tokenizer.h"
#include "train/data/text/sentencepiece_tokenizer.h"
#include "train/data/text/wordpiece_tokenizer.h"

namespace tessera::testing {
namespace {

std::vector<TokenId> bytes_of(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

// The text that each added token makes the stream print.
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
}

// A tokenizer may return one U+FFFD for each byte of an incomplete character.
TEST(TextStream, NoMoreThanThreeReplacementsCanBecomeACharacter) {
  const std::string replacement = "\xEF\xBF\xBD";
  std::string text = "a";
  for (const std::size_t whole : {1U, 1U, 1U, 1U, 4U, 7U}) {
    EXPECT_EQ(whole_characters(text), whole) << text;
    text += replacement;
  }
  EXPECT_EQ(whole_characters(replacement + "a"), 4U);
}

class StreamedTokens : public TokenizerFiles {
 protected:
  std::vector<std::shared_ptr<const Tokenizer>> tokenizers() const {
    return {std::make_shared<ByteTokenizer>(true), std::make_shared<BpeTokenizer>(bpe_vocab(), bpe_merges()),
            std::make_shared<WordPieceTokenizer>(wordpiece_vocab(), true),
            std::make_shared<SentencePieceTokenizer>(sentencepiece_model("bpe")),
            std::make_shared<SentencePieceTokenizer>(sentencepiece_model("unigram"))};
  }
};

// `whole`: the tokens encode valid text, so that every printed piece must be valid UTF-8.
void expect_whole_text(const std::shared_ptr<const Tokenizer>& tokenizer, std::vector<TokenId> before,
                       std::span<const TokenId> ids, bool whole) {
  std::string text = tokenizer->decode(before);
  TextStream stream(tokenizer, before, [&](std::string_view piece) {
    EXPECT_TRUE(!whole || find_invalid_utf8(piece) == std::string::npos) << piece;
    text += piece;
  });
  for (const TokenId id : ids) stream.add(id);
  stream.end();
  before.insert(before.end(), ids.begin(), ids.end());
  EXPECT_EQ(text, tokenizer->decode(before));
}

// One of the SentencePiece models has a token for each byte.
TEST_F(StreamedTokens, AreTheTextOfAllTokens) {
  const Value::List& texts = oracle().at("texts").as_list();
  for (const auto& tokenizer : tokenizers()) {
    SCOPED_TRACE(to_json(tokenizer->config()));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(i);
      const std::vector<TokenId> ids = encoded(*tokenizer, texts[i].as_string());
      expect_whole_text(tokenizer, {}, ids, true);
      expect_whole_text(tokenizer, encoded(*tokenizer, texts[(i + 1) % texts.size()].as_string()), ids, true);
    }
  }
}

TEST_F(StreamedTokens, MayBeAnyTokens) {
  for (const auto& tokenizer : tokenizers()) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(str(to_json(tokenizer->config()), ", seed ", seed));
      std::vector<TokenId> ids;
      for (std::uint64_t i = 0; i < 150; ++i) {
        ids.push_back(static_cast<TokenId>(random_below(RngStream(seed, "test", "tokens"), 0, i, tokenizer->vocabulary())));
      }
      expect_whole_text(tokenizer, {}, ids, false);
    }
  }
}

// A tokenizer that records how many tokens it was asked to decode.
class Counting final : public Tokenizer {
 public:
  std::string_view name() const override { return "counting"; }
  std::int64_t vocabulary() const override { return bytes_.vocabulary(); }
  void encode(std::string_view text, std::vector<TokenId>& ids) const override { bytes_.encode(text, ids); }
  std::size_t cut(std::string_view text) const override { return text.size(); }
  std::string decode(std::span<const TokenId> ids) const override {
    decoded += ids.size();
    return bytes_.decode(ids);
  }
  std::int64_t bytes_of(TokenId) const override { return 1; }
  bool is_special(TokenId) const override { return false; }
  std::string fingerprint() const override { return "counting"; }
  Value config() const override { return "counting"; }

  mutable std::size_t decoded = 0;

 private:
  ByteTokenizer bytes_;
};

TEST(TextStream, DecodesWhatIsPendingAlone) {
  const auto tokenizer = std::make_shared<Counting>();
  TextStream stream(tokenizer, {}, [](std::string_view) {});
  for (int i = 0; i < 1000; ++i) stream.add('a');
  stream.end();
  EXPECT_LE(tokenizer->decoded, 3001U) << "two for each token, and the token alone";
}

}  // namespace
}  // namespace tessera::testing
