#include "compress/formats/mode_split.h"

#include <algorithm>
#include <iterator>

#include "core/support/counting.h"
#include "core/support/error.h"

namespace tessera {

std::string why_not_into(const Modes& modes, std::int64_t size, std::string_view parts) {
  if (product_of(modes) != size) {
    return str("has ", size, ' ', parts, "; its modes ", to_text(modes), " multiply to ", product_of(modes));
  }
  if (std::ranges::find(modes, 1) != modes.end()) {
    return str("has ", size, ' ', parts, ", which do not split into ", modes.size(), " modes above 1");
  }
  return "";
}

ModeSplit split_modes(const ModesConfig& config, std::int64_t out, std::int64_t in) {
  const std::int64_t given = std::ssize(config.out.empty() ? config.in : config.out);
  const std::int64_t count = given > 0 ? given : config.count.value_or(2);
  return {config.out.empty() ? balanced_modes(out, count) : config.out,
          config.in.empty() ? balanced_modes(in, count) : config.in};
}

std::string why_no_split(const ModeSplit& modes, std::int64_t out, std::int64_t in) {
  const std::string reason = why_not_into(modes.out, out, "output channels");
  return reason.empty() ? why_not_into(modes.in, in, "input channels") : reason;
}

}  // namespace tessera
