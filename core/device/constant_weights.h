// A promise that weights keep their values, so that kernels may keep what they derive from them, such as the layout that the
// library wants.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/tensor.h"

namespace tessera {

// While one lives, no tensor that is a weight of a forward on this thread is written. The newest scope of a thread holds what is
// derived, and releases it at its end.
class ConstantWeights {
 public:
  ConstantWeights();
  ~ConstantWeights();
  ConstantWeights(const ConstantWeights&) = delete;
  ConstantWeights& operator=(const ConstantWeights&) = delete;

  static ConstantWeights* current() noexcept;  // null outside of every scope

  // What `derive` makes of `weight` for `user`, made once. Both are kept alive: their addresses are the key.
  const Tensor& derived(const std::shared_ptr<const void>& user, const Tensor& weight, const std::function<Tensor()>& derive);

 private:
  struct Entry {
    std::shared_ptr<const void> user;
    Tensor weight;
    Tensor derived;
  };

  ConstantWeights* outer_;
  std::map<std::pair<const void*, const void*>, Entry> entries_;
};

}  // namespace tessera
