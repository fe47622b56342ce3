#include "train/data/text/byte_tokenizer.h"

#include "core/support/hash.h"

namespace tessera {

void ByteTokenizer::encode(std::string_view text, std::vector<TokenId>& ids) const {
  ids.reserve(ids.size() + text.size());
  for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    check_id(id);
    if (!is_special(id)) text += static_cast<char>(id);
  }
  return text;
}

std::string ByteTokenizer::fingerprint() const { return xxh3_128(kName); }

}  // namespace tessera
