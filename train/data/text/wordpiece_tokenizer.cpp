#include "train/data/text/wordpiece_tokenizer.h"

#include <algorithm>
#include <array>

#include "core/support/error.h"
#include "core/support/hash.h"
#include "train/data/text/unicode.h"
#include "train/data/text/word_cache.h"

namespace tessera {
namespace {

constexpr std::string_view kInside = "##";
constexpr std::size_t kLongestWord = 100;  // characters; a longer word is unknown, as in BERT

bool names_special(std::string_view token) {
  constexpr std::array<std::string_view, 5> kSpecial{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  return std::ranges::find(kSpecial, token) != kSpecial.end();
}

// Ideographs are words of one character. The blocks are those that BERT lists.
bool is_ideograph(std::int32_t code) {
  const auto within = [code](std::int32_t low, std::int32_t high) { return code >= low && code <= high; };
  return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) || within(0x20000, 0x2A6DF) || within(0x2A700, 0x2B73F) ||
         within(0x2B740, 0x2B81F) || within(0x2B820, 0x2CEAF) || within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

bool is_bert_punctuation(std::int32_t code) {
  const bool ascii =
      (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) || (code >= 123 && code <= 126);
  return ascii || (code >= 128 && unicode::is_punctuation(code));
}

// Removes control characters, turns white space into blanks and puts a blank on each side of an ideograph.
std::string cleaned(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const unicode::Character character = unicode::character_at(text, at);
    const std::int32_t code = character.code;
    at += character.bytes;
    const bool line = code == '\t' || code == '\n' || code == '\r';
    if (code == 0xFFFD || (!line && unicode::is_control(code))) continue;
    if (unicode::is_space(code)) {
      clean += ' ';
    } else if (is_ideograph(code)) {
      clean += ' ';
      unicode::append(clean, code);
      clean += ' ';
    } else {
      unicode::append(clean, code);
    }
  }
  return clean;
}

std::string without_case_and_accents(std::string_view text) {
  const std::string parts = unicode::decomposed(text);
  std::string plain;
  plain.reserve(parts.size());
  for (std::size_t at = 0; at < parts.size();) {
    const unicode::Character character = unicode::character_at(parts, at);
    at += character.bytes;
    if (!unicode::is_nonspacing_mark(character.code)) unicode::append(plain, unicode::lower(character.code));
  }
  return plain;
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(const std::string& vocab, bool lower_case) : path_(vocab), lower_case_(lower_case) {
  const std::string text = read_vocabulary(vocab);
  read_vocab(text);
  fingerprint_ = xxh3_128(str(kName, ' ', lower_case ? "lower " : "", xxh3_128(text)));
}

void WordPieceTokenizer::read_vocab(const std::string& text) {
  for (std::string& token : lines_of(text)) {
    const std::size_t line = tokens_.size() + 1;
    TESSERA_CHECK(!token.empty(), IoError, path_, ':', line, ": is empty; a vocabulary has a token a line");
    const auto [known, added] = ids_.emplace(token, static_cast<TokenId>(tokens_.size()));
    TESSERA_CHECK(added, IoError, path_, ':', line, ": '", token, "' stands in line ", known->second + 1, " already");
    longest_ = std::max(longest_, token.size());
    special_.push_back(names_special(token));
    tokens_.push_back(std::move(token));
  }
  const std::optional<TokenId> unknown = find("[UNK]");
  TESSERA_CHECK(unknown, IoError, path_, ": has no [UNK], which stands for words that have no pieces");
  unknown_ = *unknown;
}

std::optional<TokenId> WordPieceTokenizer::find(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string WordPieceTokenizer::normalized(std::string_view text) const {
  std::string clean = cleaned(text);
  return lower_case_ ? without_case_and_accents(clean) : clean;
}

void WordPieceTokenizer::encode(std::string_view text, std::vector<TokenId>& ids) const {
  const std::string plain = normalized(text);
  const std::string_view view = plain;
  WordCache words(ids);
  const auto append = [&](std::size_t begin, std::size_t end) {
    if (begin == end) return;
    words.append(view.substr(begin, end - begin),
                 [this](std::string_view word, std::vector<TokenId>& out) { append_word(word, out); });
  };
  std::size_t begin = 0, at = 0;
  while (at < plain.size()) {
    const unicode::Character character = unicode::character_at(view, at);
    const bool space = unicode::is_space(character.code);
    if (space || is_bert_punctuation(character.code)) {
      append(begin, at);
      begin = at + character.bytes;
      if (!space) append(at, begin);
    }
    at += character.bytes;
  }
  append(begin, at);
}

void WordPieceTokenizer::append_word(std::string_view word, std::vector<TokenId>& ids) const {
  const std::size_t first = ids.size();
  const bool too_long = unicode::count(word) > kLongestWord;
  std::string piece;
  for (std::size_t begin = 0; begin < word.size() && !too_long;) {
    const std::string_view mark = begin > 0 ? kInside : std::string_view();
    std::size_t end = std::min(word.size(), begin + longest_);
    std::optional<TokenId> found;
    for (; end > begin; --end) {
      if (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80) continue;  // within a UTF-8 character
      piece = mark;
      piece += word.substr(begin, end - begin);
      if ((found = find(piece))) break;
    }
    if (!found) {
      ids.resize(first);
      break;
    }
    ids.push_back(*found);
    begin = end;
  }
  if (ids.size() == first) ids.push_back(unknown_);
}

std::string WordPieceTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    check_id(id);
    if (is_special(id) && id != unknown_) continue;
    const std::string_view token = tokens_[static_cast<std::size_t>(id)];
    const bool inside = token.starts_with(kInside) && token.size() > kInside.size();
    if (!inside && !text.empty()) text += ' ';
    text += inside ? token.substr(kInside.size()) : token;
  }
  return text;
}

std::int64_t WordPieceTokenizer::bytes_of(TokenId id) const {
  const std::string_view token = tokens_[static_cast<std::size_t>(id)];
  if (is_special(id)) return 0;
  const bool inside = token.starts_with(kInside) && token.size() > kInside.size();
  return static_cast<std::int64_t>(inside ? token.size() - kInside.size() : token.size() + 1);  // plus one for a blank
}

Value WordPieceTokenizer::config() const {
  Value keys = Value::map();
  keys.set("vocab", path_);
  keys.set("lower_case", lower_case_);
  Value config = Value::map();
  config.set(kName, keys);
  return config;
}

}  // namespace tessera
