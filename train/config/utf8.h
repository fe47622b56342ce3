// Validity of UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

// Offset of the first byte that starts no well-formed sequence (Unicode 15, table 3-7: no overlong forms, no surrogates, at most
// U+10FFFF), or npos.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace tessera
