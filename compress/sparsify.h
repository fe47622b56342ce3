// The pass that gives pruned layers kernels which skip what their masks do not keep.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compress/pass.h"
#include "compress/timing/veto.h"
#include "core/config/fields.h"

namespace tessera {

// The `sparsify` block of a stage.
struct SparsifyConfig {
  std::optional<Value> layers;  // a selector, or a list of selectors; every layer whose weight has a mask
  std::string keep = "faster";
  KeepForConfig keep_for;
  void fields(Fields& f);
};

// Linear layers and convolutions whose weight has a mask become SparseLinear and SparseConv2d; factored layers that are a chain
// of them a Sequential of such (compress/formats/sparse_layer.h). What goes back keeps its mask. Selected layers that cannot be
// sparse are reported dense with the reason.
class SparsifyPass final : public Pass {
 public:
  explicit SparsifyPass(SparsifyConfig config) : config_(std::move(config)) {}

  std::string_view name() const override { return "sparsify"; }
  std::string_view done() const override { return "sparse"; }
  // Problems: a selector that matches no linear layer or convolution; a network without masks.
  std::vector<BlockProblem> try_prepare(std::unique_ptr<Module>& root, const Shape& input, const PassMeans& means = {}) override;
  bool matches(const std::string& path, const Module&) const override { return reasons_.contains(path); }
  std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const override;

 private:
  SparsifyConfig config_;
  std::map<std::string, std::string> reasons_;  // by path: why it cannot be sparse; "" where it can
};

}  // namespace tessera
