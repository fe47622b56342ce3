#include "compress/patterns/pattern.h"

#include <algorithm>
#include <cmath>

#include "compress/patterns/elements.h"
#include "core/support/error.h"

namespace tessera {

std::vector<Tensor> Pattern::project(std::span<const Tensor> scores, std::int64_t kept) const {
  std::int64_t total = 0, present = 0;
  std::vector<Tensor> masks;
  for (const Tensor& each : scores) {
    const std::span<const float> all = elements(each);
    TESSERA_CHECK(std::ranges::none_of(all, [](float score) { return std::isnan(score); }), NumericError, "a score of a weight ",
                  each.shape(), " is NaN");
    const std::string why = why_not(each.shape());
    TESSERA_CHECK(why.empty(), ConfigError, "pattern ", name(), ": a weight ", each.shape(), ' ', why);
    total += each.numel();
    present += std::ranges::count_if(all, [](float score) { return score >= 0; });
    masks.push_back(Tensor::zeros(each.shape(), DType::u8));
  }
  TESSERA_CHECK(kept >= 0 && kept <= total, ConfigError, "pattern ", name(), ": ", kept,
                " elements are to be kept; must be in [0, ", total, ']');
  choose(scores, std::min(kept, present), masks);
  return masks;
}

}  // namespace tessera
