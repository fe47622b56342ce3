// Files of the small vocabularies in tests/oracle/tokenizers.json, in a folder that lives as long as a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "train/data/text/tokenizer.h"

namespace tessera {

inline std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  tokenizer.encode(text, ids);
  return ids;
}

inline std::string from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(digit));
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFF);
  }
  return bytes;
}

class TokenizerFiles : public ::testing::Test {
 protected:
  static const Value& oracle() {
    static const Value value = parse_json(real_vfs().read_file(TESSERA_ORACLE_FOLDER "/tokenizers.json"), "tokenizers.json");
    return value;
  }

  // Returns the path of the file, which is replaced where it is there.
  std::string write(const std::string& name, std::string_view bytes) const {
    write_file_atomically(real_vfs(), folder / name, bytes);
    return folder / name;
  }

  std::string bpe_vocab() const { return write("vocab.json", to_json(oracle().at("bpe").at("vocab"))); }
  std::string bpe_merges() const { return write("merges.txt", "#version: 0.2\n" + lines(oracle().at("bpe").at("merges"))); }
  std::string wordpiece_vocab() const { return write("vocab.txt", lines(oracle().at("wordpiece").at("vocab"))); }
  std::string sentencepiece_model(const std::string& kind) const {
    return write(kind + ".model", from_base64(oracle().at("sentencepiece").at(kind).at("model").as_string()));
  }

  TemporaryFolder folder;

 private:
  static std::string lines(const Value& list) {
    std::string text;
    for (const Value& line : list.as_list()) text += line.as_string() + "\n";
    return text;
  }
};

}  // namespace tessera
