// Bytes as tokens: id = byte. With a mask, id 256 is that.
#pragma once

#include "train/data/text/tokenizer.h"

namespace tessera {

class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::string_view kName = "bytes";

  explicit ByteTokenizer(bool with_mask = false) : with_mask_(with_mask) {}
  std::string_view name() const override { return kName; }
  std::int64_t vocabulary() const override { return with_mask_ ? kBytes + 1 : kBytes; }
  bool needs_utf8() const override { return false; }
  void encode(std::string_view text, std::vector<TokenId>& ids) const override;
  std::size_t cut(std::string_view text) const override { return text.size(); }
  std::string decode(std::span<const TokenId> ids) const override;
  std::int64_t bytes_of(TokenId id) const override { return id < kBytes ? 1 : 0; }
  std::optional<TokenId> mask() const override { return with_mask_ ? std::optional(kBytes) : std::nullopt; }
  bool is_special(TokenId id) const override { return id == kBytes; }
  std::string fingerprint() const override;
  Value config() const override { return kName; }

 private:
  static constexpr TokenId kBytes = 256;
  bool with_mask_;
};

}  // namespace tessera
