// The cores of a layer whose weight is a tensor train (core/linalg/tt.h), as its parameters: core1 [1, n_1, r_1], core2 [r_1,
// n_2, r_2], ...
#pragma once

#include <span>
#include <vector>

#include "core/autograd/var.h"
#include "core/nn/parameter.h"
#include "layers/compressed.h"
#include "layers/execution.h"
#include "layers/tt_modes.h"

namespace tessera {

// The shapes of the cores for these modes and the ranks between them.
std::vector<Shape> core_shapes(std::span<const std::int64_t> modes, std::span<const std::int64_t> ranks);

// [r_0, n_1, r_1], [r_1, n_2, r_2], ..., [r_(d-1), n_d, r_d], multiplied in that order -> [r_0 n_1 ... n_d, r_d]. Gradients to
// every core.
Var joined_cores(std::span<const Var> cores);

class TtCores {
 public:
  void add(Parameter& core) { cores_.push_back(&core); }
  std::size_t size() const { return cores_.size(); }
  Parameter& operator[](std::size_t k) const { return *cores_[k]; }

  void set(std::span<const Tensor> values);
  void set_trainable(bool trainable);
  // Normal numbers of one variance, so that an element of the composed weight, a sum of r_1 ... r_(d-1) products, has `variance`.
  void draw(std::uint64_t seed, const std::string& path, double variance);
  std::vector<Var> vars() const;
  Tensor composed() const;  // [n_1, ..., n_d]
  // "cores.0", "cores.1", ..., and the bias where there is one.
  std::vector<TorchPart> torch_tensors(bool bias, bool fixes_features) const;

 private:
  std::vector<Parameter*> cores_;
};

}  // namespace tessera
