#include "admm/projections.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <string_view>

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

// Those that this rank projects: the next largest goes to the rank with the fewest elements until then.
std::vector<std::size_t> share_of(const std::vector<std::size_t>& order, std::span<const Tensor> weights,
                                  const Communicator& ranks, std::vector<int>& owners) {
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks.size()), 0);
  std::vector<std::size_t> own;
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(load);
    *least += weights[i].numel();
    owners[i] = static_cast<int>(least - load.begin());
    if (owners[i] == ranks.rank()) own.push_back(i);
  }
  return own;
}

void project_some(std::span<const ConstrainedLayer> layers, std::span<const Tensor> weights, const std::vector<std::size_t>& some,
                  std::vector<Tensor>& projected) {
  const auto count = static_cast<std::int64_t>(some.size());
  // One layer has all threads for itself; a GPU has one queue.
  if (count <= 1 || weights[0].device().is_cuda()) {
    for (const std::size_t i : some) projected[i] = project(layers[i], weights[i]);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t at = 0; at < count; ++at) {
    const std::size_t i = some[static_cast<std::size_t>(at)];
    try {
      projected[i] = project(layers[i], weights[i]);
    } catch (...) {
#pragma omp critical(tessera_admm_failure)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// Each rank has its own; behind it all have all.
void exchange(Communicator& ranks, std::span<const Tensor> weights, const std::vector<int>& owners,
              std::vector<Tensor>& projected) {
  for (std::size_t i = 0; i < projected.size(); ++i) {
    Tensor& result = projected[i];
    const bool own = owners[i] == ranks.rank();
    if (own) result = result.contiguous();
    const auto* const bytes = own ? static_cast<const char*>(result.raw()) : nullptr;
    const std::vector<std::string> all = ranks.all_gather(own ? std::string_view(bytes, result.bytes()) : std::string_view());
    if (own) continue;
    result = Tensor::empty(weights[i].shape(), weights[i].dtype());
    const std::string& told = all[static_cast<std::size_t>(owners[i])];
    TESSERA_CHECK(told.size() == result.bytes(), InternalError, "admm: a rank projected ", describe(result), " to ", told.size(),
                  " bytes");
    std::memcpy(result.raw(), told.data(), told.size());
  }
}

}  // namespace

std::vector<Tensor> project_all(std::span<const ConstrainedLayer> layers, std::span<const Tensor> weights, Communicator& ranks) {
  TESSERA_CHECK(layers.size() == weights.size(), InternalError, "admm: ", layers.size(), " layers and ", weights.size(),
                " weights");
  std::vector<Tensor> projected(layers.size());
  std::vector<int> owners(layers.size());
  project_some(layers, weights, share_of(largest_first(weights), weights, ranks, owners), projected);
  if (ranks.size() > 1) exchange(ranks, weights, owners, projected);
  return projected;
}

}  // namespace tessera
