// Text that comes token by token, given out in whole characters.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/text/tokenizer.h"

namespace tessera {

class TextStream {
 public:
  using Write = std::function<void(std::string_view)>;
  // `before`: tokens that precede the text, which are not given out.
  TextStream(std::shared_ptr<const Tokenizer> tokenizer, std::span<const TokenId> before, Write write);

  void add(TokenId id);
  // Writes what add() held back because its last character is not whole.
  void end();

 private:
  std::string text() const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  // The tokens whose text is not yet written, after one token that has text: what a token decodes to depends on whether it is
  // the first.
  std::vector<TokenId> ids_;
  std::size_t written_;  // bytes of text()
  Write write_;
};

// Bytes at the front of a decoded text that no later token changes: all but the begun UTF-8 sequence at its end. A tokenizer may
// decode such a sequence to U+FFFD, one for each of its bytes, at most three.
std::size_t whole_characters(std::string_view text);

}  // namespace tessera
