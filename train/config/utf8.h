// Validity of UTF-8, and text for those who need it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

// Offset of the first byte that starts no well-formed sequence (Unicode 15, table 3-7: no overlong forms, no surrogates, at most
// U+10FFFF), or npos.
std::size_t find_invalid_utf8(std::string_view text);

// With '?' in place of each byte that is none of a sequence: names of files are bytes, JSON wants UTF-8.
std::string valid_utf8(std::string text);

// With '?' in place of control characters, too: a folder's name may hold what moves a terminal's cursor.
std::string printable(std::string text);

}  // namespace tessera
