// A safetensors file from its two halves, right or wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tessera {

inline std::string file_of(std::string_view header, std::string_view data, std::uint64_t length) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes.append(header).append(data);
}
inline std::string file_of(std::string_view header, std::string_view data = "") { return file_of(header, data, header.size()); }

}  // namespace tessera
