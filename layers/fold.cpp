#include "layers/fold.h"

#include <string>
#include <utility>
#include <vector>

#include "core/finite.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/builtin.h"
#include "layers/compressed.h"
#include "layers/convolution.h"
#include "layers/factored_conv2d.h"
#include "layers/model_tree.h"
#include "layers/residual_block.h"
#include "layers/sequential.h"

namespace tessera {
namespace {

Tensor finite_copy(const Module& owner, const std::string& name, const Tensor& value) {
  TESSERA_CHECK(all_finite(value), NumericError, "fold: '", join_path(owner.path(), name), "' contains NaN or Inf");
  return value.clone();
}

// Both modules have the same structure.
void copy_values(const Module& from, Module& to) {
  for (std::size_t i = 0; i < from.parameters().size(); ++i) {
    const Parameter& parameter = *from.parameters()[i];
    to.parameters()[i]->set_value(finite_copy(from, parameter.name(), parameter.value()));
  }
  for (std::size_t i = 0; i < from.buffers().size(); ++i) {
    const Buffer& buffer = *from.buffers()[i];
    to.buffers()[i]->value = finite_copy(from, buffer.name, buffer.value);
  }
  to.buffers_changed();
  for (std::size_t i = 0; i < from.children().size(); ++i) copy_values(*from.children()[i].module, *to.children()[i].module);
}

void fold_pair(Module& parent, const Module::Child& first, const Module::Child& second, Folds folds) {
  const auto* const norm = dynamic_cast<const BatchNorm*>(second.module.get());
  if (norm == nullptr || !ends_in_convolution(*first.module)) return;
  const auto [scale, shift] = norm->inference_map();
  const bool alone = dynamic_cast<const Convolution*>(first.module.get()) != nullptr;
  Module& holder = alone ? parent : *first.module;  // the module that holds the convolution
  const Module::Child& last = alone ? first : first.module->children().back();
  std::unique_ptr<Module> scaled = dynamic_cast<const Convolution&>(*last.module).scaled(scale, shift);
  const bool composes = as_compressed(*last.module) != nullptr && as_compressed(*scaled) == nullptr;
  if (composes && folds == Folds::keeping_compressed) return;
  holder.replace_child(last.name, std::move(scaled));
  parent.replace_child(second.name, std::make_unique<Identity>());
}

void fold_inner_norms(std::unique_ptr<Module>& root) {
  std::vector<std::string> normed;
  for_each_module(*root, [&](Module& module) {
    const auto* const conv = dynamic_cast<const FactoredConv2d*>(&module);
    if (conv != nullptr && conv->has_norms()) normed.push_back(module.path());
  });
  for (const std::string& path : normed) {
    replace_module(root, path, dynamic_cast<const FactoredConv2d&>(find_module(*root, path)).without_norms());
  }
}

}  // namespace

std::unique_ptr<Module> folded(const Module& network, const Registry<Module>& layers, Folds folds) {
  std::unique_ptr<Module> copy = rebuild(describe(network), layers);
  copy_values(network, *copy);
  const Device device = device_of(*copy);
  move_to(*copy, Device::cpu());  // folding computes in double on few numbers
  for_each_module(*copy, [folds](Module& module) {
    // Only modules that run their children in order.
    if (dynamic_cast<Sequential*>(&module) == nullptr && dynamic_cast<ResidualBlock*>(&module) == nullptr) return;
    for (std::size_t i = 0; i + 1 < module.children().size(); ++i) {
      fold_pair(module, module.children()[i], module.children()[i + 1], folds);
    }
  });
  fold_inner_norms(copy);
  move_to(*copy, device);
  return copy;
}

std::unique_ptr<Module> for_inference(const Module& network) { return folded(network, builtin_layers()); }

}  // namespace tessera
