// Sees what goes into each module of a network: statistics of activations, without a change of the tree.
#pragma once

#include <functional>

#include "core/autograd/var.h"

namespace tessera {

class Module;

// While one lives, `see` is told each module whose forward is about to run on this thread, with its input; the newest scope of
// a thread alone. What `see` throws ends the forward.
class ForwardObserver {
 public:
  using See = std::function<void(const Module& module, const Var& x)>;
  explicit ForwardObserver(See see);
  ~ForwardObserver();
  ForwardObserver(const ForwardObserver&) = delete;
  ForwardObserver& operator=(const ForwardObserver&) = delete;

  // Calls the newest scope's `see`; does nothing outside of every scope.
  static void tell(const Module& module, const Var& x);

 private:
  See see_;
  ForwardObserver* outer_;
};

}  // namespace tessera
