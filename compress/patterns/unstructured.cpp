#include "compress/patterns/unstructured.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

#include "core/support/error.h"

namespace tessera {
namespace {

std::span<const float> elements(const Tensor& scores) { return {scores.data<float>(), static_cast<std::size_t>(scores.numel())}; }

// The kept-th largest of all scores.
float threshold(std::span<const Tensor> scores, std::int64_t kept) {
  std::vector<float> all;
  for (const Tensor& each : scores) all.insert(all.end(), elements(each).begin(), elements(each).end());
  const auto nth = all.begin() + (kept - 1);
  std::nth_element(all.begin(), nth, all.end(), std::greater());
  return *nth;
}

}  // namespace

std::vector<Tensor> UnstructuredPattern::project(std::span<const Tensor> scores, std::int64_t kept) const {
  std::int64_t total = 0;
  for (const Tensor& each : scores) {
    total += each.numel();
    TESSERA_CHECK(std::ranges::none_of(elements(each), [](float score) { return std::isnan(score); }), NumericError,
                  "a score of a weight is NaN");
  }
  TESSERA_CHECK(kept >= 0 && kept <= total, ConfigError, kept, " of ", total, " weights cannot be kept");
  std::vector<Tensor> masks;
  for (const Tensor& each : scores) masks.push_back(Tensor::zeros(each.shape(), DType::u8));
  if (kept == 0) return masks;

  const float least = threshold(scores, kept);
  std::int64_t equal = kept;  // that may be kept of those as high as the threshold: what is above it leaves
  for (const Tensor& each : scores) equal -= std::ranges::count_if(elements(each), [&](float score) { return score > least; });
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const std::span<const float> from = elements(scores[i]);
    std::uint8_t* const mask = masks[i].data<std::uint8_t>();
    for (std::size_t k = 0; k < from.size(); ++k) {
      const bool keeps = from[k] > least || (from[k] == least && equal-- > 0);
      mask[k] = keeps ? 1 : 0;
    }
  }
  return masks;
}

}  // namespace tessera
