// Messages in the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding), field by field: a message
// is its fields one behind the other. Written by hand, because Debian's sentencepiece holds an old protobuf of its own, which the
// library of another version in the same process breaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::protobuf {

std::string little_endian(std::uint32_t value);
std::string little_endian(std::uint64_t value);

std::string whole_number(std::uint64_t field, std::int64_t value);  // int32, int64, bool and enum
std::string real(std::uint64_t field, float value);
std::string real(std::uint64_t field, double value);
// Texts, bytes, and messages inside of messages.
std::string part(std::uint64_t field, std::string_view content);
// What stands before the content of such a part, which the caller writes behind it.
std::string head_of_part(std::uint64_t field, std::size_t size);

}  // namespace tessera::protobuf
