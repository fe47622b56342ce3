// An event file of TensorBoard, encoded here: records (length, its checksum, data, its checksum;
// tensorflow/core/lib/io/record_writer.h) that hold messages of tensorflow/core/util/event.proto in the wire format of Protocol
// Buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

// CRC-32C (Castagnoli), as of RFC 3720: of "123456789" e3069283.
std::uint32_t crc32c(std::string_view bytes);

struct EventScalar {
  std::string tag;
  double value = 0;  // written in single precision; NaN and the infinities are values of TensorBoard, too
};

class EventFile {
 public:
  // All events are of this time, seconds since 1970. Begins with the format's version.
  explicit EventFile(double wall_time);
  void add_scalars(std::int64_t step, std::span<const EventScalar> scalars);
  // Markdown, shown under "Text", at step 0.
  void add_text(std::string_view tag, std::string_view markdown);

  const std::string& bytes() const noexcept { return bytes_; }

 private:
  void add_event(std::int64_t step, std::string_view content);

  double wall_time_;
  std::string bytes_;
};

}  // namespace tessera
