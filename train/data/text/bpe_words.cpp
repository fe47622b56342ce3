#include "train/data/text/bpe_words.h"

#include <array>

#include "train/data/text/unicode.h"

namespace tessera {
namespace {

enum class Kind { letter, number, space, other };

Kind kind_of_code(std::int32_t code) {
  if (unicode::is_space(code)) return Kind::space;
  if (unicode::is_letter(code)) return Kind::letter;
  return unicode::is_number(code) ? Kind::number : Kind::other;
}

Kind kind_of(std::int32_t code) {
  static const std::array<Kind, 128> ascii = [] {
    std::array<Kind, 128> kinds{};
    for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = kind_of_code(static_cast<std::int32_t>(i));
    return kinds;
  }();
  return code < 128 ? ascii[static_cast<std::size_t>(code)] : kind_of_code(code);
}

std::size_t contraction(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

// End of the run of characters of one kind that starts at `at`.
std::size_t run_end(std::string_view text, std::size_t at, Kind kind) {
  while (at < text.size()) {
    const unicode::Character next = unicode::character_at(text, at);
    if (kind_of(next.code) != kind) break;
    at += next.bytes;
  }
  return at;
}

// End of white space. At the end of a text it is all of it; otherwise the next word may take the last character.
std::size_t space_end(std::string_view text, std::size_t at) {
  const std::size_t end = run_end(text, at, Kind::space);
  const std::size_t last = end - unicode::character_before(text, end).bytes;
  return end == text.size() || last == at ? end : last;
}

}  // namespace

std::size_t bpe_word_end(std::string_view text, std::size_t at) {
  if (text[at] == '\'') {
    if (const std::size_t size = contraction(text.substr(at)); size > 0) return at + size;
  }
  const std::size_t first = text[at] == ' ' && at + 1 < text.size() ? at + 1 : at;
  const unicode::Character character = unicode::character_at(text, first);
  const Kind kind = kind_of(character.code);
  if (kind != Kind::space) return run_end(text, first + character.bytes, kind);
  return space_end(text, at);
}

}  // namespace tessera
