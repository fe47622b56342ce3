// How fast a compressed module is beside its dense original.
#pragma once

#include <string>
#include <string_view>

#include "compress/timing/summary.h"
#include "core/config/fields.h"

namespace tessera {

// What "faster" asks of the lower end of the ratio's interval.
inline constexpr double kFasterRatio = 1.02;

struct Speed {
  double dense_ms = 0;  // medians, per batch
  double compressed_ms = 0;
  MedianInterval ratio;  // of dense time over compressed time, by round
  bool faster = false;
  void fields(Fields& f);
};

// A network's speed in another phase than the one that decides.
struct PhaseSpeed {
  std::string phase;  // of name_of()
  std::string timed_at;  // of where_timed()
  Speed speed;
  void fields(Fields& f);
};

// "faster dense_ms 2.31 compressed_ms 1.51 ratio 1.53 low 1.49 high 1.58", the form of a recorded decision, and back; with four
// digits.
std::string to_text(const Speed& speed);
Speed speed_from(std::string_view text);  // throws ConfigError
// The word of such a text that decides: "faster" or "not-faster".
std::string verdict_of(std::string_view text);

// "1.53x (1.49-1.58)"
std::string describe(const MedianInterval& ratio);

}  // namespace tessera
