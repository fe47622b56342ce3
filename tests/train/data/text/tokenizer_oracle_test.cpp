// Compares our tokens with those of Hugging Face's tokenizers and SentencePiece's Python package.
// tests/oracle/tokenizer_fixtures.py wrote tests/oracle/tokenizers.json.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/data/text/tokenizer_files.h"
#include "train/data/text/bpe_tokenizer.h"
#include "train/data/text/sentencepiece_tokenizer.h"
#include "train/data/text/text_pieces.h"
#include "train/data/text/wordpiece_tokenizer.h"

namespace tessera {
namespace {

std::vector<TokenId> ids_in(const Value& list) {
  std::vector<TokenId> ids;
  for (const Value& id : list.as_list()) ids.push_back(static_cast<TokenId>(id.as_int()));
  return ids;
}

void expect_ids(const Tokenizer& tokenizer, const Value& texts, const Value& expected) {
  ASSERT_EQ(texts.as_list().size(), expected.as_list().size());
  for (std::size_t i = 0; i < texts.as_list().size(); ++i) {
    const std::string& text = texts.as_list()[i].as_string();
    if (expected.as_list()[i].is_null()) continue;
    EXPECT_EQ(encoded(tokenizer, text), ids_in(expected.as_list()[i])) << "text " << i << ": " << text;
  }
}

class TokenizerOracle : public TokenizerFiles {
 protected:
  const Value& texts() const { return oracle().at("texts"); }
};

TEST_F(TokenizerOracle, Bpe) {
  const BpeTokenizer tokenizer(bpe_vocab(), bpe_merges());
  expect_ids(tokenizer, texts(), oracle().at("bpe").at("ids"));
  for (const Value& text : texts().as_list()) EXPECT_EQ(tokenizer.decode(encoded(tokenizer, text.as_string())), text.as_string());
}

TEST_F(TokenizerOracle, WordPiece) {
  const Value& expected = oracle().at("wordpiece");
  expect_ids(WordPieceTokenizer(wordpiece_vocab(), true), texts(), expected.at("lower"));
  const WordPieceTokenizer cased(wordpiece_vocab(), false);
  expect_ids(cased, texts(), expected.at("cased"));
  EXPECT_EQ(cased.decode(encoded(cased, texts().as_list()[7].as_string())), expected.at("text").as_string());
}

TEST_F(TokenizerOracle, SentencePiece) {
  for (const char* kind : {"bpe", "unigram"}) {
    SCOPED_TRACE(kind);
    const Value& expected = oracle().at("sentencepiece").at(kind);
    const SentencePieceTokenizer tokenizer(sentencepiece_model(kind));
    const Value& clean = oracle().at("clean");
    expect_ids(tokenizer, clean, expected.at("ids"));
    EXPECT_EQ(tokenizer.decode(ids_in(expected.at("decoded_ids"))), expected.at("decoded").as_string());
  }
}

// The tokens do not depend on the size of the pieces in which a file is read.
TEST_F(TokenizerOracle, PiecesChangeNoToken) {
  std::string all;
  for (const Value& text : oracle().at("clean").as_list()) all += text.as_string() + "\n ";
  const std::string file = write("all.txt", all);
  const std::vector<std::shared_ptr<const Tokenizer>> tokenizers{
      std::make_shared<BpeTokenizer>(bpe_vocab(), bpe_merges()), std::make_shared<WordPieceTokenizer>(wordpiece_vocab(), true),
      std::make_shared<SentencePieceTokenizer>(sentencepiece_model("bpe")),
      std::make_shared<SentencePieceTokenizer>(sentencepiece_model("unigram"))};
  for (const auto& tokenizer : tokenizers) {
    SCOPED_TRACE(tokenizer->name());
    const std::vector<TokenId> whole = encoded(*tokenizer, all);
    for (const std::size_t size : {1, 2, 3, 7, 64, 1000}) {
      std::vector<TokenId> ids;
      std::size_t pieces = 0;
      for_each_piece(file, *tokenizer, {.usual = size}, [&](std::string_view piece) {
        tokenizer->encode(piece, ids);
        ++pieces;
      });
      EXPECT_EQ(ids, whole) << "pieces of " << size;
      EXPECT_GT(pieces, 3u);
    }
  }
}

TEST_F(TokenizerOracle, BytesAreThoseOfTheText) {
  const BpeTokenizer bpe(bpe_vocab(), bpe_merges());
  const SentencePieceTokenizer fallback(sentencepiece_model("bpe"));
  for (const Value& text : oracle().at("clean").as_list()) {
    const auto bytes = [&](const Tokenizer& tokenizer) {
      std::int64_t sum = 0;
      for (const TokenId id : encoded(tokenizer, text.as_string())) sum += tokenizer.bytes_of(id);
      return sum;
    };
    EXPECT_EQ(bytes(bpe), static_cast<std::int64_t>(text.as_string().size()));
    // Each line gets one leading blank.
    const auto breaks = std::ranges::count(text.as_string(), '\n');
    const std::int64_t lines = breaks + (text.as_string().empty() || text.as_string().ends_with('\n') ? 0 : 1);
    EXPECT_EQ(bytes(fallback), static_cast<std::int64_t>(text.as_string().size()) + lines) << text.as_string();
  }
}

}  // namespace
}  // namespace tessera
