// What tokenizers ask about characters, as the installed utf8proc knows them: Unicode 15 in Debian 12.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::unicode {

struct Character {
  std::int32_t code = 0;
  std::size_t bytes = 1;
};

std::string library();  // "utf8proc 2.8.0"

// The character that begins at byte `at` < text.size(). A byte that begins none is the replacement character U+FFFD, one byte
// long.
Character character_at(std::string_view text, std::size_t at);
// The character that ends before byte `end` >= 1.
Character character_before(std::string_view text, std::size_t end);
void append(std::string& text, std::int32_t code);
std::size_t count(std::string_view text);  // characters of valid UTF-8

bool is_letter(std::int32_t code);  // general category L*
bool is_number(std::int32_t code);  // N*
bool is_space(std::int32_t code);  // the property White_Space
bool is_punctuation(std::int32_t code);  // P*
bool is_control(std::int32_t code);  // Cc, Cf and Co
bool is_nonspacing_mark(std::int32_t code);  // Mn

std::int32_t lower(std::int32_t code);  // the simple mapping: one character each
std::string decomposed(std::string_view text);  // NFD of valid UTF-8

}  // namespace tessera::unicode
