#include "train/report/tensorboard/event_file.h"

#include <array>
#include <bit>

#include "core/io/protobuf.h"

namespace tessera {
namespace {

using protobuf::little_endian, protobuf::part, protobuf::real, protobuf::whole_number;

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

// A checksum of data that holds checksums would be weak, so the format rotates and offsets those it stores.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

std::string record(std::string_view data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + little_endian(masked(crc32c(length))) + std::string(data) + little_endian(masked(crc32c(data)));
}

// Field numbers of the messages.
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
  // Fields of value 0 are not written.
  const std::string at = step == 0 ? std::string() : whole_number(event::kStep, step);
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
