#include "admm/projections.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>

#include "core/comm/buckets.h"
#include "core/device/decisions.h"
#include "core/support/error.h"
#include "core/support/profile.h"

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

// The layers that this rank projects. Layers are dealt largest first, each to the rank with the fewest elements so far.
std::vector<std::size_t> share_of(const std::vector<std::size_t>& order, std::span<const Tensor> weights,
                                  const Communicator& ranks) {
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks.size()), 0);
  std::vector<std::size_t> own;
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(load);
    *least += weights[i].numel();
    if (least - load.begin() == ranks.rank()) own.push_back(i);
  }
  return own;
}

void project_some(std::span<const ConstrainedLayer> layers, std::span<const Tensor> weights, const std::vector<std::size_t>& some,
                  std::vector<Tensor>& projected) {
  // A single layer uses all threads, and a GPU has one queue. With several layers, each is projected by one thread, even if this
  // rank has only one of them: the bytes of a projection may depend on its number of threads.
  if (layers.size() <= 1 || weights[0].device().is_cuda()) {
    std::optional<ThreadDecisions> first;  // no choice by timing: the other ranks do not reach the same products
    if (!weights.empty() && weights[0].device().is_cuda()) first.emplace(DecisionMap());
    for (const std::size_t i : some) projected[i] = project(layers[i], weights[i]);
    return;
  }
  const auto count = static_cast<std::int64_t>(some.size());
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

// Gives every rank the projections of all. A rank adds -0 for those that it lacks: this changes no number, not even another zero.
void exchange(Communicator& ranks, std::span<const Tensor> weights, std::vector<Tensor>& projected) {
  charge_profile(ProfilePart::hooks, "projections");
  for (std::size_t i = 0; i < projected.size(); ++i) {
    projected[i] = projected[i].defined() ? projected[i].contiguous()
                                          : Tensor::full(weights[i].shape(), -0.0, weights[i].dtype(), weights[i].device());
  }
  all_reduce(ranks, projected);
  charge_profile(ProfilePart::exchange, "projections");
}

}  // namespace

std::vector<Tensor> project_all(std::span<const ConstrainedLayer> layers, std::span<const Tensor> weights, Communicator& ranks) {
  TESSERA_CHECK(layers.size() == weights.size(), InternalError, "admm: ", layers.size(), " layers and ", weights.size(),
                " weights");
  std::vector<Tensor> projected(layers.size());
  project_some(layers, weights, share_of(largest_first(weights), weights, ranks), projected);
  if (ranks.size() > 1) exchange(ranks, weights, projected);
  return projected;
}

}  // namespace tessera
