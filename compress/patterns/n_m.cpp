#include "compress/patterns/n_m.h"

#include <charconv>

#include "compress/patterns/elements.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void keep_largest(std::span<const float> group, std::int64_t n, std::span<std::uint8_t> mask) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::int64_t better = 0;
    for (std::size_t k = 0; k < group.size(); ++k) better += group[k] > group[i] || (group[k] == group[i] && k < i) ? 1 : 0;
    mask[i] = better < n && group[i] >= 0 ? 1 : 0;
  }
}

}  // namespace

std::optional<NOfM> parse_n_m(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<std::int64_t> n = whole_number(text.substr(0, colon)), m = whole_number(text.substr(colon + 1));
  if (!n || !m || *n < 1 || *n >= *m) return std::nullopt;
  return NOfM{.n = *n, .m = *m};
}

std::string NOfMPattern::why_not(const Shape& weight) const {
  if (weight.rank() < 2) return "is no matrix";
  const std::int64_t inputs = matrix_of(weight).inputs;
  return inputs % config_.m == 0 ? "" : str("has ", inputs, " inputs, which ", config_.m, " does not divide");
}

void NOfMPattern::choose(std::span<const Tensor> scores, std::int64_t, std::span<const Tensor> masks) const {
  const auto size = static_cast<std::size_t>(config_.m);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::span<const float> all = elements(scores[i]);
    for (std::size_t begin = 0; begin < all.size(); begin += size) {
      keep_largest(all.subspan(begin, size), config_.n, bits(masks[i]).subspan(begin, size));
    }
  }
}

}  // namespace tessera
