#include "train/report/tensorboard/event_file.h"

#include <array>
#include <bit>

namespace tessera {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82f63b78u : 0u);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = crc_table();

// Checksums of data that holds checksums would be weak: those in files are rotated and moved.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

template <class Unsigned>
std::string little_endian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

// Wire types of Protocol Buffers.
enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string key(std::uint64_t field, Wire wire) { return varint(field << 3 | static_cast<std::uint64_t>(wire)); }

std::string whole_number(std::uint64_t field, std::uint64_t value) { return key(field, Wire::varint) + varint(value); }
std::string real(std::uint64_t field, float value) {
  return key(field, Wire::fixed32) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string real(std::uint64_t field, double value) {
  return key(field, Wire::fixed64) + little_endian(std::bit_cast<std::uint64_t>(value));
}
// Texts, and messages inside of messages.
std::string part(std::uint64_t field, std::string_view content) {
  return key(field, Wire::bytes) + varint(content.size()) + std::string(content);
}

std::string record(std::string_view data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + little_endian(masked(crc32c(length))) + std::string(data) + little_endian(masked(crc32c(data)));
}

// Fields of the messages.
namespace event {
constexpr std::uint64_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
}
namespace value {
constexpr std::uint64_t kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
}
constexpr std::uint64_t kSummaryValue = 1;

// A TensorProto without dimensions: dtype DT_STRING, tensor_shape, string_val.
std::string text_tensor(std::string_view text) { return whole_number(1, 7) + part(2, "") + part(8, text); }

// A SummaryMetadata: plugin_data with its plugin_name, and data_class DATA_CLASS_TENSOR.
std::string text_metadata() { return part(1, part(1, "text")) + whole_number(4, 2); }

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

EventFile::EventFile(double wall_time) : wall_time_(wall_time) { add_event(0, part(event::kFileVersion, "brain.Event:2")); }

void EventFile::add_event(std::int64_t step, std::string_view content) {
  // A field of value 0 is not written.
  const std::string at = step == 0 ? std::string() : whole_number(event::kStep, static_cast<std::uint64_t>(step));
  bytes_ += record(real(event::kWallTime, wall_time_) + at + std::string(content));
}

void EventFile::add_scalars(std::int64_t step, std::span<const EventScalar> scalars) {
  std::string values;
  for (const EventScalar& scalar : scalars) {
    values += part(kSummaryValue, part(value::kTag, scalar.tag) + real(value::kSimpleValue, static_cast<float>(scalar.value)));
  }
  add_event(step, part(event::kSummary, values));
}

void EventFile::add_text(std::string_view tag, std::string_view markdown) {
  const std::string content =
      part(value::kTag, tag) + part(value::kTensor, text_tensor(markdown)) + part(value::kMetadata, text_metadata());
  add_event(0, part(event::kSummary, part(kSummaryValue, content)));
}

}  // namespace tessera
