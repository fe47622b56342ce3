// From text to token numbers and back. A token's number is its row in an embedding and its place among a network's answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"

namespace tessera {

using TokenId = std::int32_t;

// Every function may be called from several threads at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string_view name() const = 0;
  virtual std::int64_t vocabulary() const = 0;  // ids are 0 to vocabulary() - 1
  virtual bool needs_utf8() const { return true; }  // encode() takes valid UTF-8 only

  // Appends the tokens of a text. Text that spells a special token is ordinary text.
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) const = 0;
  // Bytes at the front of a longer text whose tokens are the same whatever follows, and that change no token of what follows;
  // 0 where there is no such place.
  virtual std::size_t cut(std::string_view text) const = 0;
  // The text that tokens stand for. Special tokens stand for none, except the unknown one, which stands for a sign. Throws
  // ConfigError on an id outside the vocabulary.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;
  // Bytes that decode() gives for the token inside a text; 0 of special ones, the unknown one among them.
  virtual std::int64_t bytes_of(TokenId id) const = 0;

  virtual std::optional<TokenId> end_of_text() const { return {}; }  // stands between two files
  virtual std::optional<TokenId> mask() const { return {}; }  // takes a hidden token's place
  virtual std::optional<TokenId> unknown() const { return {}; }  // stands for text without a token of its own
  virtual bool is_special(TokenId id) const = 0;  // stands for no text, or for unknown text; never hidden by a mask

  virtual std::string fingerprint() const = 0;  // XXH3-128: equal texts and options, equal tokens
  virtual std::string library() const { return {}; }  // name and version of a library that tokens depend on too
  virtual Value config() const = 0;  // as the key `tokenizer` of an experiment file names it

 protected:
  void check_id(TokenId id) const;  // throws ConfigError on one outside the vocabulary
};

// A cut before the last blank, tab or line break behind a character that is no white space: words end there for every tokenizer
// whose tokens never hold white space behind something else.
std::size_t cut_before_white_space(std::string_view text);

// `path`'s content. Throws IoError also on more than 64 MiB, which no vocabulary has.
std::string read_vocabulary(const std::string& path);

// Its lines, without their ends "\n" or "\r\n".
std::vector<std::string> lines_of(std::string_view vocabulary);

}  // namespace tessera
