// Bytes as people read them.
#pragma once

#include <string>
#include <string_view>

namespace tessera::testing {

inline std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    for (const int shift : {4, 0}) text += "0123456789abcdef"[(static_cast<unsigned char>(byte) >> shift) & 15];
  }
  return text;
}

}  // namespace tessera::testing
