// What layers with a weight in a compressed form offer beside being modules, so that selection, timing, exports and reports need
// to know no form.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/nn/module.h"
#include "layers/ranks.h"

namespace tessera {

// A parameter or buffer as PyTorch names and lays it out. A layer of several steps is a Sequential there, whose parts stand in
// the order of the forward: in_factor is "0.weight", the bias belongs to the last part. One that composes its weight has
// "cores.0" and its own bias.
struct TorchPart {
  std::string tensor;  // ours: "in_factor", or of a child "norm0.running_mean"
  std::string name;  // PyTorch's: "0.weight"
  bool convolution = false;  // ours is [out, kh, kw, in], PyTorch's [out, in, kh, kw]
  bool reads_features = false;  // its last axis is the layer's input features, whose order a flatten before it decides
  bool fixes_features = false;  // it reads input features in an order that it cannot change: not behind a flattened image
};

class CompressedLayer {
 public:
  virtual ~CompressedLayer() = default;
  virtual Ranks ranks() const = 0;
  // The weight that the factors compose, in the shape of the dense layer's.
  virtual Tensor dense_weight() const = 0;
  // The dense layer that computes the same in evaluation. Bias and trainability are copied.
  virtual std::unique_ptr<Module> to_dense() const = 0;
  // Every parameter, in the order of the module's, then its children's parameters and buffers. None where PyTorch has no such
  // layer: exports then hold the dense one.
  virtual std::vector<TorchPart> torch_tensors() const = 0;
  // Whether it holds elements of the dense weight at the places that a mask keeps: it takes no other mask.
  virtual bool is_sparse() const { return false; }
  // Elements of the dense weight that the layer leaves out because they are zero.
  virtual std::int64_t left_out() const { return 0; }
  // What decides the layer's time and is not in its config: two layers of one config and structure share a timing.
  virtual std::string structure() const { return ""; }
  // Why a backward cannot compute its forward again (Context::recompute): "has ..., ...". "" where it can.
  virtual std::string why_not_recompute() const { return ""; }
};

// The module as a CompressedLayer; null for a layer that is dense.
inline const CompressedLayer* as_compressed(const Module& module) { return dynamic_cast<const CompressedLayer*>(&module); }

// Value and trainability of a bias, between a dense layer and its compressed form; neither has one where `from` is null.
void copy_bias(const Parameter* from, Parameter* to);

}  // namespace tessera
