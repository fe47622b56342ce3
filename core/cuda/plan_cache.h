// What libraries prepared for one shape, kept to be used again; and the choice among what they offer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"

namespace tessera::cuda {

// Plans by everything that matters to them. Hold one per thread (thread_local): a plan serves one thread at a time.
template <class Plan>
class PlanCache {
 public:
  // Above this many plans the oldest knowledge is worth less than its memory: the cache starts over.
  static constexpr std::size_t kMaxPlans = 2048;

  template <class Build>
  std::shared_ptr<Plan> get(std::vector<std::int64_t> key, const Build& build) {
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    std::shared_ptr<Plan> plan = build();
    if (plans_.size() >= kMaxPlans) plans_.clear();
    plans_.emplace(std::move(key), plan);
    return plan;
  }

 private:
  std::map<std::vector<std::int64_t>, std::shared_ptr<Plan>> plans_;
};

// Index of the candidate that decide() takes for `key`, by the device's clock; 0 where nothing may be timed, as while a graph is
// recorded: the first one then has to do. `run(i)` queues candidate i once. A candidate that finds no memory is not chosen,
// unless it is the first.
std::size_t choose(Device device, const std::string& key, std::span<const std::string> names,
                   const std::function<void(std::size_t)>& run);

}  // namespace tessera::cuda
