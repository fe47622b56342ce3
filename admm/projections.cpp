#include "admm/projections.h"

#include <algorithm>
#include <exception>
#include <numeric>

#include "core/support/error.h"

namespace tessera {
namespace {

Tensor project(const ConstrainedLayer& layer, const Tensor& weight) {
  try {
    return layer.constraint->project(weight);
  } catch (const NumericError& error) {
    throw NumericError(str("admm: layer '", layer.path, "': ", error.what()));
  } catch (const OutOfMemoryError& error) {
    throw error.at(str("admm: layer '", layer.path, "'"));
  }
}

std::vector<std::size_t> largest_first(std::span<const Tensor> weights) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return weights[a].numel() > weights[b].numel(); });
  return order;
}

}  // namespace

std::vector<Tensor> project_all(std::span<const ConstrainedLayer> layers, std::span<const Tensor> weights) {
  TESSERA_CHECK(layers.size() == weights.size(), InternalError, "admm: ", layers.size(), " layers and ", weights.size(),
                " weights");
  std::vector<Tensor> projected(layers.size());
  const std::vector<std::size_t> order = largest_first(weights);
  const auto count = static_cast<std::int64_t>(order.size());
  // One layer has all threads for itself; a GPU has one queue.
  if (count <= 1 || weights[0].device().is_cuda()) {
    for (const std::size_t i : order) projected[i] = project(layers[i], weights[i]);
    return projected;
  }
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t at = 0; at < count; ++at) {
    const std::size_t i = order[static_cast<std::size_t>(at)];
    try {
      projected[i] = project(layers[i], weights[i]);
    } catch (...) {
#pragma omp critical(tessera_admm_failure)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  return projected;
}

}  // namespace tessera
