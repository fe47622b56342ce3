#include "train/data/text/text_pieces.h"

#include <gtest/gtest.h>

#include "core/support/hash.h"
#include "tests/support/message_of.h"
#include "tests/train/data/text/tokenizer_files.h"
#include "train/data/text/byte_tokenizer.h"
#include "train/data/text/wordpiece_tokenizer.h"

namespace tessera {
namespace {

class TextPieces : public TokenizerFiles {
 protected:
  std::string error_of(const std::string& file, const Tokenizer& tokenizer, const PieceSizes& sizes = {}) const {
    return message_of<IoError>([&] { for_each_piece(file, tokenizer, sizes, [](std::string_view) {}); });
  }

  const WordPieceTokenizer words{wordpiece_vocab(), true};
  const ByteTokenizer bytes;
};

TEST_F(TextPieces, HoldNoMoreThanAPiece) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "word ";
  std::size_t most = 0;
  std::string again;
  const std::string hash = for_each_piece(write("a.txt", text), words, {.usual = 100}, [&](std::string_view piece) {
    most = std::max(most, piece.size());
    again += piece;
  });
  EXPECT_LE(most, 100u);
  EXPECT_EQ(again, text);
  EXPECT_EQ(hash, xxh3_128(text));
  EXPECT_EQ(hash_of_file(folder / "a.txt"), hash);
}

TEST_F(TextPieces, BadUtf8IsNamedByByteAndLine) {
  const std::string file = write("bad.txt",
                                 "one\ntwo words\nthr\xff"
                                 "ee\n");
  for (const std::size_t usual : {2, 5, 1000}) {
    EXPECT_EQ(error_of(file, words, {.usual = usual}),
              file + ":3: byte 17 of the file is no UTF-8; convert it, or use tokenizer: bytes");
  }
  EXPECT_EQ(error_of(file, bytes), "");
  const std::string cut = write("cut.txt", "a \xe4\xb8");
  EXPECT_EQ(error_of(cut, words), cut + ":1: byte 2 of the file is no UTF-8; convert it, or use tokenizer: bytes");
}

TEST_F(TextPieces, FilesWithoutTextAreNamed) {
  const std::string empty = write("empty.txt", "");
  EXPECT_EQ(error_of(empty, bytes), empty + ": is empty; needs text");
  EXPECT_EQ(error_of(folder / "none.txt", bytes), folder / "none.txt" + ": cannot be opened: No such file or directory");
  EXPECT_EQ(error_of(folder.path().string(), bytes), folder.path().string() + ": cannot be read: Is a directory");
}

TEST_F(TextPieces, ATextWithoutAPlaceToCutEnds) {
  const std::string file = write("long.txt", std::string(300, 'x'));
  EXPECT_EQ(error_of(file, words, {.usual = 10, .longest = 300}),
            file + ": 300 bytes in a row without a place where tokenizer wordpiece may cut; is it text?");
  EXPECT_EQ(error_of(file, words, {.usual = 10, .longest = 301}), "") << "the end is a place";
  EXPECT_EQ(error_of(file, bytes, {.usual = 10, .longest = 10}), "");
}

}  // namespace
}  // namespace tessera
