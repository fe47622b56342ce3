// Checks text for valid UTF-8, and makes text valid for readers that need it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

// Offset of the first byte that starts no well-formed sequence (Unicode 15, table 3-7: no overlong forms, no surrogates, at most
// U+10FFFF), or npos.
std::size_t find_invalid_utf8(std::string_view text);

// The text with '?' in place of each byte that belongs to no well-formed sequence: file names are bytes, but JSON needs UTF-8.
std::string valid_utf8(std::string text);

// The same, and with '?' in place of control characters: a folder's name may hold one that moves a terminal's cursor.
std::string printable(std::string text);

}  // namespace tessera
