// BERT's WordPiece (Devlin et al. 2019; Wu et al. 2016): words between white space and punctuation, each cut greedily into the
// longest pieces that the vocabulary has. White space, control characters and, with lower_case, case and accents are lost.
#pragma once

#include <unordered_map>

#include "train/data/text/tokenizer.h"
#include "train/data/text/unicode.h"

namespace tessera {

class WordPieceTokenizer final : public Tokenizer {
 public:
  static constexpr std::string_view kName = "wordpiece";

  // BERT's vocab.txt: a token a line, pieces inside a word begin with ##. Throws IoError naming file and line: no [UNK], a token
  // twice, an empty line.
  WordPieceTokenizer(const std::string& vocab, bool lower_case);

  std::string_view name() const override { return kName; }
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(tokens_.size()); }
  void encode(std::string_view text, std::vector<TokenId>& ids) const override;
  std::size_t cut(std::string_view text) const override { return cut_before_white_space(text); }
  // Words with a blank between them; nothing glues punctuation to words again.
  std::string decode(std::span<const TokenId> ids) const override;
  std::int64_t bytes_of(TokenId id) const override;
  std::optional<TokenId> end_of_text() const override { return find("[SEP]"); }
  std::optional<TokenId> mask() const override { return find("[MASK]"); }
  std::optional<TokenId> unknown() const override { return unknown_; }
  bool is_special(TokenId id) const override { return special_[static_cast<std::size_t>(id)]; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string library() const override { return unicode::library(); }
  Value config() const override;  // {wordpiece: {vocab, lower_case}}

 private:
  void read_vocab(const std::string& text);
  std::optional<TokenId> find(const std::string& token) const;
  std::string normalized(std::string_view text) const;
  void append_word(std::string_view word, std::vector<TokenId>& ids) const;

  std::string path_;
  bool lower_case_;
  std::vector<std::string> tokens_;
  std::vector<bool> special_;
  std::unordered_map<std::string, TokenId> ids_;
  std::size_t longest_ = 0;  // token, in bytes
  TokenId unknown_ = 0;
  std::string fingerprint_;
};

}  // namespace tessera
