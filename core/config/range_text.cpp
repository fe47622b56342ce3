#include "core/config/range_text.h"

#include <cmath>
#include <cstdint>

#include "core/support/error.h"

namespace tessera {
namespace {

// Writes whole numbers with all their digits: 1048576 rather than 1.04858e+06.
std::string number(double value) {
  constexpr double kWhole = 9007199254740992;  // 2^53: every whole number up to it is a double
  const bool whole = value == std::floor(value) && std::abs(value) <= kWhole;
  return whole ? str(static_cast<std::int64_t>(value)) : str(value);
}

}  // namespace

std::string range_text(const Range& range) {
  const bool from = std::isfinite(range.min);
  const bool to = std::isfinite(range.max);
  if (from && to)
    return str("in ", range.open_min ? '(' : '[', number(range.min), ", ", number(range.max), range.open_max ? ')' : ']');
  if (from) return str(range.open_min ? "greater than " : "at least ", number(range.min));
  if (to) return str(range.open_max ? "less than " : "at most ", number(range.max));
  return "";
}

}  // namespace tessera
