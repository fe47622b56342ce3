#include "train/run/early_updates.h"

#include <utility>

namespace tessera {
namespace {

constexpr std::int64_t kElements = std::int64_t{1} << 17;  // elements of one update; fewer are not worth waking threads for

}  // namespace

EarlyUpdates::EarlyUpdates(std::span<const NamedParameter> parameters, Update update) : update_(std::move(update)) {
  for (const NamedParameter& entry : parameters) parameters_[entry.parameter->var().node().get()] = entry.parameter;
}

LeafDone EarlyUpdates::take() {
  return [this](const Node& leaf) {
    const auto found = parameters_.find(&leaf);
    if (found == parameters_.end()) return;
    waiting_.push_back(found->second);
    elements_ += leaf.value.numel();
    if (elements_ >= kElements) finish();
  };
}

void EarlyUpdates::finish() {
  if (!waiting_.empty()) update_(waiting_);
  forget();
}

}  // namespace tessera
