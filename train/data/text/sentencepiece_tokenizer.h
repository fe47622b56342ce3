// A SentencePiece model (Kudo and Richardson 2018), unigram or BPE, through its own library. A text is encoded line by line, as
// spm_encode does, each with its line break: models that normalise white space drop it, models that fall back to bytes keep it.
#pragma once

#include <memory>

#include "train/data/text/tokenizer.h"

namespace tessera {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  static constexpr std::string_view kName = "sentencepiece";

  explicit SentencePieceTokenizer(const std::string& path);  // throws IoError on a file that is no model
  ~SentencePieceTokenizer() override;

  std::string_view name() const override { return kName; }
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(bytes_.size()); }
  void encode(std::string_view text, std::vector<TokenId>& ids) const override;
  std::size_t cut(std::string_view text) const override { return text.rfind('\n') + 1; }
  std::string decode(std::span<const TokenId> ids) const override;
  std::int64_t bytes_of(TokenId id) const override { return bytes_[static_cast<std::size_t>(id)]; }
  std::optional<TokenId> end_of_text() const override { return end_of_text_; }  // </s>
  std::optional<TokenId> mask() const override { return mask_; }  // <mask> or [MASK]
  std::optional<TokenId> unknown() const override { return unknown_; }
  bool is_special(TokenId id) const override { return special_[static_cast<std::size_t>(id)]; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string library() const override;  // of the build
  Value config() const override;  // {sentencepiece: path}

 private:
  struct Model;

  std::string path_;
  std::unique_ptr<Model> model_;
  std::vector<std::int64_t> bytes_;
  std::vector<bool> special_;
  std::optional<TokenId> end_of_text_, mask_, unknown_;
  std::string fingerprint_;
};

}  // namespace tessera
