#include "core/io/protobuf.h"

#include <bit>

namespace tessera::protobuf {
namespace {

// Wire types.
enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(std::uint64_t field, Wire wire) { return varint(field << 3 | static_cast<std::uint64_t>(wire)); }

template <class Unsigned>
std::string lowest_first(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

}  // namespace

std::string little_endian(std::uint32_t value) { return lowest_first(value); }
std::string little_endian(std::uint64_t value) { return lowest_first(value); }

std::string whole_number(std::uint64_t field, std::int64_t value) {
  return key(field, Wire::varint) + varint(static_cast<std::uint64_t>(value));
}
std::string real(std::uint64_t field, float value) {
  return key(field, Wire::fixed32) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string real(std::uint64_t field, double value) {
  return key(field, Wire::fixed64) + little_endian(std::bit_cast<std::uint64_t>(value));
}

std::string head_of_part(std::uint64_t field, std::size_t size) { return key(field, Wire::bytes) + varint(size); }

std::string part(std::uint64_t field, std::string_view content) {
  return head_of_part(field, content.size()) + std::string(content);
}

}  // namespace tessera::protobuf
