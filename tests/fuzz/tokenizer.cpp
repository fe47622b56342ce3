#include <algorithm>
#include <cstdio>

#include "core/support/error.h"
#include "core/support/hash.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"
#include "train/data/text/bpe_tokenizer.h"
#include "train/data/text/token_file.h"
#include "train/data/text/wordpiece_tokenizer.h"

namespace tessera::fuzz {
namespace {

// Returns the bytes up to the first zero byte, and leaves what follows it in `rest`.
std::string_view part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view first = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return first;
}

std::vector<TokenId> checked_tokens(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids, halves;
  tokenizer.encode(text, ids);
  for (const TokenId id : ids) require(id >= 0 && id < tokenizer.vocabulary(), "a token outside the vocabulary");
  const std::size_t cut = tokenizer.cut(text);
  require(cut <= text.size(), "a cut behind the text");
  tokenizer.encode(text.substr(0, cut), halves);
  tokenizer.encode(text.substr(cut), halves);
  require(halves == ids, "a cut changed tokens");
  return ids;
}

void bpe(std::string_view vocab, std::string_view merges, std::string_view text) {
  static MemoryFile vocab_file, merges_file;
  vocab_file.write(vocab);
  merges_file.write(merges);
  try {
    const BpeTokenizer tokenizer(vocab_file.path(), merges_file.path());
    require(tokenizer.decode(checked_tokens(tokenizer, text)) == text, "decoding changed the text");
  } catch (const IoError&) {
  }
}

void wordpiece(std::string_view vocab, std::string_view text) {
  static MemoryFile file;
  file.write(vocab);
  try {
    for (const bool lower_case : {false, true}) {
      const WordPieceTokenizer tokenizer(file.path(), lower_case);
      tokenizer.decode(checked_tokens(tokenizer, text));
    }
  } catch (const IoError&) {
  }
}

// Reads the bytes as a token file with the right checksum.
void tokens(std::string_view bytes) {
  const std::string whole = std::string(bytes) + xxh3_128(bytes);
  try {
    const TokenFile file(whole, std::string(32, 'k'), "fuzz.tokens");
    std::vector<TokenId> all;
    for (std::int64_t i = 0; i < file.size(); ++i) all.push_back(file.at(i));
    require(all.size() * 2 <= bytes.size(), "more tokens than bytes hold");
  } catch (const IoError&) {
  }
}

// A vocabulary of the 256 bytes, a few pairs of letters, and the end of text.
std::string small_vocab() {
  std::string vocab = "{";
  int id = 0;
  for (int byte = 0, hidden = 256; byte < 256; ++byte) {
    const bool seen = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int code = seen ? byte : hidden++;
    char escaped[16];
    std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(code));
    vocab += str('"', escaped, "\":", id++, ',');
  }
  return str(vocab, "\"th\":256,\"the\":257,\"<|endoftext|>\":258}");
}

}  // namespace

void tokenizer(std::string_view bytes) {
  tokens(bytes);
  std::string_view rest = bytes;
  const std::string_view first = part(rest);
  wordpiece(first, rest);
  const std::string_view second = part(rest);
  bpe(first, second, rest);
  bpe(small_vocab(), "t h\nth e\n", bytes);
}

std::vector<std::string> tokenizer_seeds() {
  const std::string end(1, '\0');
  return {small_vocab() + end + "#version: 0.2\nt h\nth e\n" + end + "the then'll  there\n\n",
          "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n##n\n.\n" + end + "The then. \xe4\xb8\x96\xc3\xa9",
          std::string("tessera tokens\n\0", 16) + std::string("\1\0\0\0\2\0\0\0", 8) + std::string(32, 'k') +
              std::string(8, '\0') + std::string("\5\0\6\0", 4) + std::string(16, '\0') +
              std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16)};
}

}  // namespace tessera::fuzz
