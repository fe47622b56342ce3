#include "core/config/range_text.h"

#include <cmath>

#include "core/support/error.h"

namespace tessera {

std::string range_text(const Range& range) {
  const bool from = std::isfinite(range.min);
  const bool to = std::isfinite(range.max);
  if (from && to) return str("in ", range.open_min ? '(' : '[', range.min, ", ", range.max, range.open_max ? ')' : ']');
  if (from) return str(range.open_min ? "greater than " : "at least ", range.min);
  if (to) return str(range.open_max ? "less than " : "at most ", range.max);
  return "";
}

}  // namespace tessera
