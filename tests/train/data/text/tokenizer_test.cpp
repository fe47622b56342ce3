#include "train/data/text/tokenizer.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/train/data/text/tokenizer_files.h"
#include "train/data/text/bpe_tokenizer.h"
#include "train/data/text/bpe_words.h"
#include "train/data/text/byte_tokenizer.h"
#include "train/data/text/sentencepiece_tokenizer.h"
#include "train/data/text/unicode.h"
#include "train/data/text/wordpiece_tokenizer.h"

namespace tessera {
namespace {

using ::testing::Test;

std::string bpe_error(const std::string& vocab, const std::string& merges) {
  return message_of<IoError>([&] { BpeTokenizer(vocab, merges); });
}

std::string wordpiece_error(const std::string& vocab) {
  return message_of<IoError>([&] { WordPieceTokenizer(vocab, true); });
}

class Tokenizers : public TokenizerFiles {};

TEST_F(Tokenizers, BytesAreTheirOwnNumbers) {
  const ByteTokenizer bytes;
  EXPECT_EQ(encoded(bytes, std::string_view("a\0\xff", 3)), (std::vector<TokenId>{97, 0, 255}));
  EXPECT_EQ(bytes.decode(std::vector<TokenId>{97, 0, 255}), std::string("a\0\xff", 3));
  EXPECT_EQ(bytes.vocabulary(), 256);
  EXPECT_FALSE(bytes.mask());
  EXPECT_EQ(message_of<ConfigError>([&] { static_cast<void>(bytes.decode(std::vector<TokenId>{256})); }),
            "tokenizer bytes: no token has the number 256; the vocabulary has 256");
}

TEST_F(Tokenizers, BytesMayHaveAMask) {
  const ByteTokenizer masked(true);
  EXPECT_EQ(masked.vocabulary(), 257);
  EXPECT_EQ(masked.mask(), 256);
  EXPECT_TRUE(masked.is_special(256));
  EXPECT_FALSE(masked.is_special(255));
  EXPECT_EQ(masked.decode(std::vector<TokenId>{97, 256, 98}), "ab");
}

TEST_F(Tokenizers, BpeTakesAnyBytes) {
  const BpeTokenizer bpe(bpe_vocab(), bpe_merges());
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i * 37 % 256);
  EXPECT_EQ(bpe.decode(encoded(bpe, bytes)), bytes);
}

TEST_F(Tokenizers, SpecialTokensInATextAreText) {
  const BpeTokenizer bpe(bpe_vocab(), bpe_merges());
  ASSERT_TRUE(bpe.end_of_text() && bpe.mask());
  for (const TokenId id : encoded(bpe, "a<|endoftext|>b<mask>")) EXPECT_FALSE(bpe.is_special(id));
  EXPECT_EQ(bpe.decode(std::vector<TokenId>{*bpe.end_of_text()}), "");
  EXPECT_EQ(bpe.bytes_of(*bpe.end_of_text()), 0);
  const WordPieceTokenizer wordpiece(wordpiece_vocab(), true);
  for (const TokenId id : encoded(wordpiece, "[MASK] a [SEP]")) EXPECT_NE(id, wordpiece.mask());
  EXPECT_EQ(wordpiece.decode(encoded(wordpiece, "The tokens")), "the tokens");
}

TEST_F(Tokenizers, WordsOfGpt2) {
  const auto words = [](std::string_view text) {
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = bpe_word_end(text, at);
      found.emplace_back(text.substr(at, end - at));
      at = end;
    }
    return found;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("it's  12\n\nx'"), (Words{"it", "'s", " ", " 12", "\n", "\n", "x", "'"}));
  EXPECT_EQ(words(" \n"), (Words{" \n"}));
  EXPECT_EQ(words("a\t b"), (Words{"a", "\t", " b"}));
  EXPECT_EQ(words("'re're"), (Words{"'re", "'re"}));
  EXPECT_EQ(words("\xff\xfe a"), (Words{"\xff\xfe", " a"}));
}

TEST_F(Tokenizers, CutsStandBeforeWhiteSpaceBehindAWord) {
  EXPECT_EQ(cut_before_white_space("ab cd ef"), 5u);
  EXPECT_EQ(cut_before_white_space("ab  "), 2u);
  EXPECT_EQ(cut_before_white_space("abc"), 0u);
  EXPECT_EQ(cut_before_white_space("  abc"), 0u);
  EXPECT_EQ(cut_before_white_space("a\xc2\xa0 b"), 0u) << "a no-break space is white space";
  EXPECT_EQ(cut_before_white_space("\xe4\xb8\x96\n"), 3u);
  EXPECT_EQ(cut_before_white_space(""), 0u);
}

TEST_F(Tokenizers, FingerprintsFollowTheFilesAndOptions) {
  const BpeTokenizer bpe(bpe_vocab(), bpe_merges());
  EXPECT_EQ(BpeTokenizer(bpe_vocab(), bpe_merges()).fingerprint(), bpe.fingerprint());
  EXPECT_NE(BpeTokenizer(bpe_vocab(), write("fewer.txt", "")).fingerprint(), bpe.fingerprint());
  const WordPieceTokenizer lower(wordpiece_vocab(), true), cased(wordpiece_vocab(), false);
  EXPECT_NE(lower.fingerprint(), cased.fingerprint());
  EXPECT_NE(ByteTokenizer().fingerprint(), bpe.fingerprint());
}

TEST_F(Tokenizers, FaultsOfBpeFilesAreNamed) {
  const std::string vocab = bpe_vocab(), merges = bpe_merges();
  const std::string list = write("list.json", "[1]");
  EXPECT_EQ(bpe_error(list, merges), list + ": is a list; needs an object of tokens and their numbers");
  const std::string few = write("few.json", R"({"a": 0})");
  EXPECT_EQ(bpe_error(few, merges), few + ": no token '\xc4\x80' for the byte 0; a byte-level vocabulary has one for each");
  const std::string gap = write("gap.json", R"({"a": 0, "b": 2})");
  EXPECT_EQ(bpe_error(gap, merges), gap + ": token 'b' has 2; numbers must be 0 to 1, each once");
  const std::string twice = write("twice.json", R"({"a": 0, "b": 0})");
  EXPECT_EQ(bpe_error(twice, merges), twice + ": token 'b' has 0; numbers must be 0 to 1, each once");
  const std::string foreign = write("foreign.json", "{\"\xe4\xb8\x96\": 0}");
  EXPECT_EQ(bpe_error(foreign, merges), foreign + ": token '\xe4\xb8\x96' has a character that stands for no byte");
  const std::string single = write("single.txt", "#version: 0.2\nth\n");
  EXPECT_EQ(bpe_error(vocab, single), single + ":2: is 'th'; a merge is two tokens with a blank between them");
  const std::string unknown = write("unknown.txt", "z q\n");
  EXPECT_EQ(bpe_error(vocab, unknown), unknown + ":1: 'zq' is no token of " + vocab);
  const std::string merge = oracle().at("bpe").at("merges").as_list()[0].as_string();
  const std::string again = write("again.txt", merge + "\r\n" + merge + "\r\n");
  EXPECT_EQ(bpe_error(vocab, again), str(again, ":2: '", merge, "' is there twice"));
  EXPECT_NE(bpe_error(folder / "none.json", merges), "");
}

TEST_F(Tokenizers, FaultsOfWordPieceFilesAreNamed) {
  const std::string none = write("none.txt", "a\nb\n");
  EXPECT_EQ(wordpiece_error(none), none + ": has no [UNK], which stands for words that have no pieces");
  const std::string gap = write("gap.txt", "[UNK]\n\nb\n");
  EXPECT_EQ(wordpiece_error(gap), gap + ":2: is empty; a vocabulary has a token a line");
  const std::string twice = write("twice.txt", "[UNK]\na\r\na\n");
  EXPECT_EQ(wordpiece_error(twice), twice + ":3: 'a' stands in line 2 already");
}

TEST_F(Tokenizers, FilesThatAreNoSentencePieceModelAreRefused) {
  const std::string text = write("text.model", "not a model");
  EXPECT_TRUE(
      message_of<IoError>([&] { SentencePieceTokenizer tokenizer(text); }).starts_with(text + ": is no SentencePiece model"));
  const std::string empty = write("empty.model", "");
  EXPECT_NE(message_of<IoError>([&] { SentencePieceTokenizer tokenizer(empty); }), "");
}

TEST_F(Tokenizers, UnicodeKnowsItsCharacters) {
  using namespace unicode;
  EXPECT_EQ(character_at("\xe4\xb8\x96", 0).code, 0x4E16);
  EXPECT_EQ(character_at("\xe4\xb8", 0).code, 0xFFFD);
  EXPECT_EQ(character_at("\xe4\xb8", 0).bytes, 1u);
  EXPECT_EQ(character_before("a\xe4\xb8\x96", 4).code, 0x4E16);
  EXPECT_EQ(character_before("a\xb8\x96", 3).code, 0xFFFD);
  EXPECT_TRUE(is_letter(0x4E16) && is_letter('a') && !is_letter('1') && !is_letter(0x301));
  EXPECT_TRUE(is_number('1') && is_number(0xB2) && is_number(0x2167) && !is_number('a'));
  EXPECT_TRUE(is_space(0xA0) && is_space(0x2028) && !is_space(0x200B));
  EXPECT_TRUE(is_control(0xAD) && is_control(0) && !is_control('a'));
  EXPECT_EQ(lower(0x130), 0x69);
  EXPECT_EQ(decomposed("\xc3\x89"), "E\xcc\x81");
  EXPECT_EQ(count("a\xe4\xb8\x96"), 2u);
}

}  // namespace
}  // namespace tessera
