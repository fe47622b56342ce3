#include "compress/patterns/unstructured.h"

#include <algorithm>
#include <functional>

#include "compress/patterns/elements.h"

namespace tessera {
namespace {

// The kept-th largest of all scores.
float threshold(std::span<const Tensor> scores, std::int64_t kept) {
  std::vector<float> all;
  for (const Tensor& each : scores) all.insert(all.end(), elements(each).begin(), elements(each).end());
  const auto nth = all.begin() + (kept - 1);
  std::nth_element(all.begin(), nth, all.end(), std::greater());
  return *nth;
}

}  // namespace

void UnstructuredPattern::choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const {
  if (kept == 0) return;
  const float least = threshold(scores, kept);
  std::int64_t equal = kept;  // how many scores equal to the threshold may be kept, after all those above it
  for (const Tensor& each : scores) equal -= std::ranges::count_if(elements(each), [&](float score) { return score > least; });
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const std::span<const float> from = elements(scores[i]);
    const std::span<std::uint8_t> mask = bits(masks[i]);
    for (std::size_t k = 0; k < from.size(); ++k) {
      const bool keeps = from[k] > least || (from[k] == least && equal-- > 0);
      mask[k] = keeps ? 1 : 0;
    }
  }
}

}  // namespace tessera
