// GPT-2's byte-level BPE (Radford et al. 2019, "Language models are unsupervised multitask learners", section 2.2): a word
// begins as its bytes; then, again and again, the pair of neighbours that is earliest in a list of merges becomes one token,
// until no pair is in the list. Every text has tokens, and decode() gives the text back byte for byte.
#pragma once

#include <array>
#include <unordered_map>

#include "train/data/text/tokenizer.h"
#include "train/data/text/unicode.h"

namespace tessera {

class BpeTokenizer final : public Tokenizer {
 public:
  static constexpr std::string_view kName = "bpe";

  // Hugging Face's vocab.json and merges.txt. Throws IoError naming file, and line of a merge: a byte without a token, numbers
  // other than 0 to n - 1, a merge of or into what is no token.
  BpeTokenizer(const std::string& vocab, const std::string& merges);

  std::string_view name() const override { return kName; }
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(texts_.size()); }
  void encode(std::string_view text, std::vector<TokenId>& ids) const override;
  std::size_t cut(std::string_view text) const override { return cut_before_white_space(text); }
  std::string decode(std::span<const TokenId> ids) const override;
  std::int64_t bytes_of(TokenId id) const override;
  std::optional<TokenId> end_of_text() const override { return end_of_text_; }  // <|endoftext|>
  std::optional<TokenId> mask() const override { return mask_; }  // <mask>
  bool is_special(TokenId id) const override { return special_[static_cast<std::size_t>(id)]; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string library() const override { return unicode::library(); }
  Value config() const override;  // {bpe: {vocab, merges}}

 private:
  struct Merge {
    std::int32_t rank;  // the least is merged first; of equal ones the leftmost
    TokenId result;
  };

  void read_vocab(const std::string& text);
  void read_merges(const std::string& text);
  void add_merge(std::string_view line, std::size_t number);
  TokenId id_of(std::string_view token, std::size_t line) const;
  void append_word(std::string_view word, std::vector<TokenId>& ids) const;
  const Merge* merge_of(TokenId left, TokenId right) const;

  std::string vocab_path_, merges_path_;
  std::vector<std::string> texts_;  // by id, bytes; empty of special tokens
  std::vector<bool> special_;
  std::unordered_map<std::string, TokenId> ids_;  // by the token as the file spells it
  std::array<TokenId, 256> byte_ids_{};
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::optional<TokenId> end_of_text_, mask_;
  std::string fingerprint_;
};

}  // namespace tessera
