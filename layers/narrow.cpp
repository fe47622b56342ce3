#include "layers/narrow.h"

#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/conv2d.h"
#include "layers/model_tree.h"

namespace tessera {
namespace {

using Keep = std::vector<bool>;
using Indices = std::vector<std::int64_t>;

// Kept entries of an axis with `size` entries: one per channel, or one per channel and pixel of a flattened image.
Indices kept_of(const Keep& keep, std::int64_t size) {
  Indices kept;
  for (std::int64_t i = 0; i < size; ++i) {
    if (keep.empty() || keep[static_cast<std::size_t>(i) % keep.size()]) kept.push_back(i);
  }
  return kept;
}

Tensor picked(const Tensor& from, int axis, const Indices& kept) {
  Shape shape = from.shape();
  shape.set(axis, static_cast<std::int64_t>(kept.size()));
  std::size_t inner = size_of(from.dtype());
  for (int i = axis + 1; i < from.rank(); ++i) inner *= static_cast<std::size_t>(from.dim(i));
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= from.dim(i);
  const Tensor result = Tensor::empty(shape, from.dtype());
  const auto* const source = static_cast<const std::byte*>(from.raw());
  auto* target = static_cast<std::byte*>(result.raw());
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const std::int64_t k : kept) {
      std::memcpy(target, source + static_cast<std::size_t>(i * from.dim(axis) + k) * inner, inner);
      target += inner;
    }
  }
  return result;
}

bool keeps_all(const Tensor& mask) {
  for (std::int64_t i = 0; i < mask.numel(); ++i) {
    if (mask.data<std::uint8_t>()[i] == 0) return false;
  }
  return true;
}

class Narrowing {
 public:
  Narrowing(const ChannelFlow& flow, const std::vector<Keep>& keep) : keep_(keep) {
    for (const LayerChannels& layer : flow.layers) layers_.emplace(layer.path, layer);
  }

  void narrow_configs(Value& tree, const std::string& path) const {
    if (const auto layer = layers_.find(path); layer != layers_.end()) narrow_config(*tree.find("config"), layer->second);
    for (Value& child : tree.find("children")->as_list()) {
      narrow_configs(child, join_path(path, child.at("name").as_string()));
    }
  }

  // Copies into a module of the narrowed config.
  void copy_values(const Module& from, Module& to) const {
    for (std::size_t i = 0; i < from.parameters().size(); ++i) copy(from, *from.parameters()[i], *to.parameters()[i]);
    for (std::size_t i = 0; i < from.buffers().size(); ++i) {
      to.buffers()[i]->value = narrow(from, from.buffers()[i]->value);
    }
    to.buffers_changed();
    for (std::size_t i = 0; i < from.children().size(); ++i) copy_values(*from.children()[i].module, *to.children()[i].module);
  }

 private:
  void narrow_config(Value& config, const LayerChannels& layer) const {
    for (const auto& [key, group] : {std::pair("channels", layer.out), std::pair("in", layer.in), std::pair("out", layer.out)}) {
      Value* const size = config.find(key);
      if (size != nullptr) *size = static_cast<std::int64_t>(kept_of(keep_[group], size->as_int()).size());
    }
    Value* const groups = config.find("groups");
    if (groups != nullptr && groups->as_int() > 1) *groups = config.at("in");  // depthwise: one group for each channel
  }

  void copy(const Module& owner, const Parameter& from, Parameter& to) const {
    to.set_value(narrow(owner, from.value()));
    to.set_trainable(from.trainable());
    if (!from.mask().defined()) return;
    const Tensor mask = narrow(owner, from.mask());
    if (!keeps_all(mask)) to.set_mask(mask);
  }

  // The first axis of every tensor is for outputs. The last axis of a matrix or filter is for inputs.
  Tensor narrow(const Module& owner, const Tensor& value) const {
    const Tensor host = value.to(Device::cpu()).contiguous();
    const auto layer = layers_.find(owner.path());
    if (layer == layers_.end()) return host.clone();
    const Tensor rows = picked(host, 0, kept_of(keep_[layer->second.out], host.dim(0)));
    const auto* const conv = dynamic_cast<const Conv2d*>(&owner);
    if (rows.rank() < 2 || (conv != nullptr && conv->options().groups > 1)) return rows;
    return picked(rows, rows.rank() - 1, kept_of(keep_[layer->second.in], rows.dim(-1)));
  }

  const std::vector<Keep>& keep_;
  std::map<std::string, LayerChannels> layers_;  // by path
};

}  // namespace

std::unique_ptr<Module> narrowed(const Module& network, const ChannelFlow& flow, const std::vector<std::vector<bool>>& keep) {
  const Narrowing narrowing(flow, keep);
  Value tree = describe(network);
  narrowing.narrow_configs(tree, network.path());
  std::unique_ptr<Module> made = rebuild(tree, builtin_layers());
  narrowing.copy_values(network, *made);
  return made;
}

}  // namespace tessera
