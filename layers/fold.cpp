#include "layers/fold.h"

#include "core/error.h"
#include "core/finite.h"
#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/builtin.h"
#include "layers/convolution.h"
#include "layers/residual_block.h"
#include "layers/sequential.h"

namespace tessera {
namespace {

Tensor finite_copy(const Module& owner, const std::string& name, const Tensor& value) {
  TESSERA_CHECK(all_finite(value), NumericError, "fold: '", join_path(owner.path(), name), "' contains NaN or Inf");
  return value.clone();
}

std::unique_ptr<Module> copied(const Module& module, const Registry<Module>& layers) {
  std::unique_ptr<Module> copy = layers.build(module.kind(), module.config());
  for (std::size_t i = 0; i < module.parameters().size(); ++i) {
    const Parameter& parameter = *module.parameters()[i];
    copy->parameters()[i]->set_value(finite_copy(module, parameter.name(), parameter.value()));
  }
  for (std::size_t i = 0; i < module.buffers().size(); ++i) {
    const Buffer& buffer = *module.buffers()[i];
    copy->buffers()[i]->value = finite_copy(module, buffer.name, buffer.value);
  }
  for (const Module::Child& child : module.children()) copy->add_child(child.name, copied(*child.module, layers));
  return copy;
}

void fold_pair(Module& parent, const Module::Child& first, const Module::Child& second) {
  const auto* const conv = dynamic_cast<const Convolution*>(first.module.get());
  const auto* const norm = dynamic_cast<const BatchNorm*>(second.module.get());
  if (conv == nullptr || norm == nullptr) return;
  const auto [scale, shift] = norm->inference_map();
  parent.replace_child(first.name, conv->scaled(scale, shift));
  parent.replace_child(second.name, std::make_unique<Identity>());
}

}  // namespace

std::unique_ptr<Module> folded(const Module& network, const Registry<Module>& layers) {
  std::unique_ptr<Module> copy = copied(network, layers);
  for_each_module(*copy, [](Module& module) {
    // What runs its children in their order.
    if (dynamic_cast<Sequential*>(&module) == nullptr && dynamic_cast<ResidualBlock*>(&module) == nullptr) return;
    for (std::size_t i = 0; i + 1 < module.children().size(); ++i) {
      fold_pair(module, module.children()[i], module.children()[i + 1]);
    }
  });
  return copy;
}

std::unique_ptr<Module> for_inference(const Module& network) { return folded(network, builtin_layers()); }

}  // namespace tessera
