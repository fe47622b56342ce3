#include "train/config/utf8.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

struct Sequence {
  std::size_t length = 0;  // 0: no sequence starts with this byte
  int second_min = 0x80;
  int second_max = 0xBF;
};

Sequence sequence_of(unsigned char lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {};
  if (lead < 0xE0) return {2};
  if (lead < 0xF0) return {3, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF};
  if (lead < 0xF5) return {4, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF};
  return {};
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const Sequence sequence = sequence_of(static_cast<unsigned char>(text[i]));
    if (sequence.length == 0 || i + sequence.length > text.size()) return i;
    for (std::size_t k = 1; k < sequence.length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      const bool second = k == 1;
      if (byte < (second ? sequence.second_min : 0x80) || byte > (second ? sequence.second_max : 0xBF)) return i;
    }
    i += sequence.length;
  }
  return std::string_view::npos;
}

std::string valid_utf8(std::string text) {
  for (std::size_t at = find_invalid_utf8(text); at != std::string::npos; at = find_invalid_utf8(text)) text[at] = '?';
  return text;
}

std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return valid_utf8(std::move(text));
}

}  // namespace tessera
