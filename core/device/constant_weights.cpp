#include "core/device/constant_weights.h"

namespace tessera {
namespace {

thread_local ConstantWeights* newest = nullptr;

}  // namespace

ConstantWeights::ConstantWeights() : outer_(newest) { newest = this; }

ConstantWeights::~ConstantWeights() { newest = outer_; }

ConstantWeights* ConstantWeights::current() noexcept { return newest; }

const Tensor& ConstantWeights::derived(const std::shared_ptr<const void>& user, const Tensor& weight,
                                       const std::function<Tensor()>& derive) {
  const std::pair<const void*, const void*> key(user.get(), weight.raw());
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second.derived;
  std::erase_if(entries_, [](const auto& entry) { return entry.second.user.use_count() == 1; });  // tried but not chosen
  return entries_.emplace(key, Entry{user, weight, derive()}).first->second.derived;
}

}  // namespace tessera
