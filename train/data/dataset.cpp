#include "train/data/dataset.h"

#include <numeric>
#include <utility>

namespace tessera {

Shape sample_shape(const Dataset& dataset) { return batch_shape(dataset.fields().front().shape, 1); }

Subset all_of(std::shared_ptr<const Dataset> dataset) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(dataset->size()));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return {std::move(dataset), std::move(indices)};
}

Subset without_left_out(Subset subset) {
  std::erase_if(subset.indices, [&](std::int64_t index) { return subset.dataset->is_left_out(index); });
  return subset;
}

}  // namespace tessera
