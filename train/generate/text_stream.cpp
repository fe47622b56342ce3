#include "train/generate/text_stream.h"

#include <utility>

namespace tessera {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::size_t kLongestBegun = 3;  // most bytes of an unfinished character

std::size_t length_of_sequence(unsigned char lead) {
  if (lead >= 0xF0) return 4;
  if (lead >= 0xE0) return 3;
  return lead >= 0xC0 ? 2 : 1;
}

}  // namespace

std::size_t whole_characters(std::string_view text) {
  std::string_view before = text;
  for (std::size_t i = 0; i < kLongestBegun && before.ends_with(kReplacement); ++i) before.remove_suffix(kReplacement.size());
  if (before.size() < text.size()) return before.size();
  for (std::size_t back = 1; back <= kLongestBegun && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;  // ASCII
    if (byte < 0xC0) continue;  // inside a sequence
    return length_of_sequence(byte) > back ? text.size() - back : text.size();
  }
  return text.size();
}

TextStream::TextStream(std::shared_ptr<const Tokenizer> tokenizer, std::span<const TokenId> before, Write write)
    : tokenizer_(std::move(tokenizer)), ids_(before.begin(), before.end()), written_(text().size()), write_(std::move(write)) {}

std::string TextStream::text() const { return tokenizer_->decode(ids_); }

void TextStream::add(TokenId id) {
  ids_.push_back(id);
  const std::string all = text();
  const std::size_t whole = whole_characters(all);
  if (whole <= written_) return;
  write_(std::string_view(all).substr(written_, whole - written_));
  written_ = whole;
  if (whole < all.size()) return;
  const std::string last = tokenizer_->decode(std::span(&id, 1));
  if (last.empty()) return;
  ids_ = {id};
  written_ = last.size();
}

void TextStream::end() {
  const std::string all = text();
  if (all.size() > written_) write_(std::string_view(all).substr(written_));
  written_ = all.size();
}

}  // namespace tessera
