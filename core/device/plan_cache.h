// What libraries prepared for one shape, kept to be used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace tessera {

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

}  // namespace tessera
