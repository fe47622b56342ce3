// Weights that are updated while backward goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/autograd/backward.h"
#include "core/nn/module.h"
#include "optim/optimizer.h"

namespace tessera {

// Each weight is updated as soon as its gradient is complete and no op reads the weight any more, while the gradient is still in
// the caches. Then the gradient is dropped, and the next layer's gradient takes its memory. Weights and optimiser state get the
// same bytes as from updates after backward. For steps in which nothing else reads a gradient, and on the CPU, where an update
// of one weight fills all threads.
class EarlyUpdates {
 public:
  // What it is given outlives it. `update` does the optimiser's step of these parameters, which have gradients, and drops those.
  using Update = std::function<void(std::span<Parameter* const>)>;
  EarlyUpdates(std::span<const NamedParameter> parameters, Update update);

  // For the last sweep of a step. A weight that the sweep does not report keeps its gradient for the step's end.
  LeafDone take();
  // After the sweep: updates the weights that were reported and still wait for others.
  void finish();
  // Where the step is given up.
  void forget() { waiting_.clear(), elements_ = 0; }

 private:
  std::unordered_map<const Node*, Parameter*> parameters_;
  Update update_;
  std::vector<Parameter*> waiting_;  // together too small for an update of their own
  std::int64_t elements_ = 0;  // of these
};

}  // namespace tessera
