#include "train/data/text/bpe_tokenizer.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "core/support/error.h"
#include "core/support/hash.h"
#include "core/support/text.h"
#include "train/data/text/bpe_words.h"
#include "train/data/text/unicode.h"
#include "train/data/text/word_cache.h"

namespace tessera {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::string_view kMask = "<mask>";

bool names_special(std::string_view token) {
  constexpr std::array<std::string_view, 6> kSpecial{kEndOfText, kMask, "<s>", "</s>", "<pad>", "<unk>"};
  return std::ranges::find(kSpecial, token) != kSpecial.end();
}

bool stands_for_itself(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

// The character that stands for each byte in the files. A visible byte is itself; the n-th other byte is U+0100 + n.
const std::array<std::int32_t, 256>& byte_characters() {
  static const std::array<std::int32_t, 256> characters = [] {
    std::array<std::int32_t, 256> made{};
    std::int32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) made[static_cast<std::size_t>(byte)] = stands_for_itself(byte) ? byte : next++;
    return made;
  }();
  return characters;
}

std::string spelling_of(int byte) {
  std::string text;
  unicode::append(text, byte_characters()[static_cast<std::size_t>(byte)]);
  return text;
}

std::string bytes_of_token(const std::string& token, const std::string& path) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const unicode::Character character = unicode::character_at(token, at);
    const auto& characters = byte_characters();
    const auto found = std::ranges::find(characters, character.code);
    TESSERA_CHECK(found != characters.end(), IoError, path, ": token '", token, "' has a character that stands for no byte");
    bytes += static_cast<char>(found - characters.begin());
    at += character.bytes;
  }
  return bytes;
}

std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

// A token of the word that is being merged: an entry of a linked list of the remaining tokens.
struct Symbol {
  TokenId id;
  std::int32_t previous, next;  // -1: none
};

struct Candidate {
  std::int32_t rank, at;
  TokenId left, right, result;

  friend bool operator>(const Candidate& a, const Candidate& b) { return std::tie(a.rank, a.at) > std::tie(b.rank, b.at); }
};

}  // namespace

BpeTokenizer::BpeTokenizer(const std::string& vocab, const std::string& merges) : vocab_path_(vocab), merges_path_(merges) {
  const std::string vocab_text = read_vocabulary(vocab);
  const std::string merges_text = read_vocabulary(merges);
  read_vocab(vocab_text);
  read_merges(merges_text);
  fingerprint_ = xxh3_128(str(kName, ' ', xxh3_128(vocab_text), ' ', xxh3_128(merges_text)));
}

void BpeTokenizer::read_vocab(const std::string& text) {
  const Value vocab = parse_json(text, vocab_path_);
  TESSERA_CHECK(vocab.is_map(), IoError, vocab_path_, ": is ", vocab.kind_name(),
                "; needs an object of tokens and their numbers");
  const std::size_t size = vocab.as_map().size();
  texts_.resize(size);
  special_.resize(size);
  std::vector<bool> taken(size);
  for (const Value::Entry& entry : vocab.as_map()) {
    const std::int64_t id = entry.value.kind() == Value::Kind::integer ? entry.value.as_int() : -1;
    const bool fits = id >= 0 && id < static_cast<std::int64_t>(size) && !taken[static_cast<std::size_t>(id)];
    TESSERA_CHECK(fits, IoError, vocab_path_, ": token '", entry.key, "' has ", to_json(entry.value), "; numbers must be 0 to ",
                  size - 1, ", each once");
    const auto at = static_cast<std::size_t>(id);
    taken[at] = true;
    special_[at] = names_special(entry.key);
    if (!special_[at]) texts_[at] = bytes_of_token(entry.key, vocab_path_);
    ids_.emplace(entry.key, static_cast<TokenId>(id));
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids_.find(spelling_of(byte));
    TESSERA_CHECK(found != ids_.end(), IoError, vocab_path_, ": no token '", spelling_of(byte), "' for the byte ", byte,
                  "; a byte-level vocabulary has one for each");
    byte_ids_[static_cast<std::size_t>(byte)] = found->second;
  }
  const auto special = [&](std::string_view token) {
    const auto found = ids_.find(std::string(token));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  };
  end_of_text_ = special(kEndOfText);
  mask_ = special(kMask);
}

void BpeTokenizer::read_merges(const std::string& text) {
  std::size_t number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    if (!line.empty() && !line.starts_with("#version")) add_merge(line, number);
  }
}

void BpeTokenizer::add_merge(std::string_view line, std::size_t number) {
  const std::size_t blank = line.find(' ');
  TESSERA_CHECK(blank != std::string_view::npos && line.find(' ', blank + 1) == std::string_view::npos, IoError, merges_path_,
                ':', number, ": is '", line, "'; a merge is two tokens with a blank between them");
  const std::string_view left = line.substr(0, blank), right = line.substr(blank + 1);
  const Merge merge{static_cast<std::int32_t>(merges_.size()), id_of(str(left, right), number)};
  const bool added = merges_.emplace(pair_key(id_of(left, number), id_of(right, number)), merge).second;
  TESSERA_CHECK(added, IoError, merges_path_, ':', number, ": '", line, "' is there twice");
}

TokenId BpeTokenizer::id_of(std::string_view token, std::size_t line) const {
  const auto found = ids_.find(std::string(token));
  TESSERA_CHECK(found != ids_.end(), IoError, merges_path_, ':', line, ": '", token, "' is no token of ", vocab_path_);
  return found->second;
}

const BpeTokenizer::Merge* BpeTokenizer::merge_of(TokenId left, TokenId right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BpeTokenizer::encode(std::string_view text, std::vector<TokenId>& ids) const {
  WordCache words(ids);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = bpe_word_end(text, at);
    words.append(text.substr(at, end - at), [this](std::string_view word, std::vector<TokenId>& out) { append_word(word, out); });
    at = end;
  }
}

void BpeTokenizer::append_word(std::string_view word, std::vector<TokenId>& ids) const {
  std::vector<Symbol> symbols;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto size = static_cast<std::int32_t>(word.size());
  for (std::int32_t i = 0; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(word[static_cast<std::size_t>(i)]);
    symbols.push_back({byte_ids_[byte], i - 1, i + 1 < size ? i + 1 : -1});
  }
  const auto symbol = [&](std::int32_t at) -> Symbol& { return symbols[static_cast<std::size_t>(at)]; };
  const auto propose = [&](std::int32_t at) {
    if (at < 0 || symbol(at).next < 0) return;
    const TokenId left = symbol(at).id, right = symbol(symbol(at).next).id;
    if (const Merge* merge = merge_of(left, right)) candidates.push({merge->rank, at, left, right, merge->result});
  };
  for (std::int32_t i = 0; i < size; ++i) propose(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbol(best.at);
    // One of the two may have become part of another token in the meantime.
    if (left.id != best.left || left.next < 0 || symbol(left.next).id != best.right) continue;
    Symbol& right = symbol(left.next);
    left.id = best.result;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) symbol(left.next).previous = best.at;
    propose(left.previous);
    propose(best.at);
  }
  for (std::int32_t at = 0; at >= 0; at = symbol(at).next) ids.push_back(symbol(at).id);
}

std::string BpeTokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    check_id(id);
    text += texts_[static_cast<std::size_t>(id)];
  }
  return text;
}

std::int64_t BpeTokenizer::bytes_of(TokenId id) const {
  return static_cast<std::int64_t>(texts_[static_cast<std::size_t>(id)].size());
}

Value BpeTokenizer::config() const {
  Value files = Value::map();
  files.set("vocab", vocab_path_);
  files.set("merges", merges_path_);
  Value config = Value::map();
  config.set(kName, files);
  return config;
}

}  // namespace tessera
