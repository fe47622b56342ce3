#include "layers/channel_flow.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/residual.h"
#include "layers/residual_block.h"
#include "layers/sequential.h"

namespace tessera {
namespace {

// Kinds that map zeros to zeros and keep the order of channels. A flattened image repeats all channels, once for each pixel.
constexpr std::array<std::string_view, 10> kKeepZeros{"avg_pool2d", "dropout", "flatten",    "gelu", "global_avg_pool",
                                                      "identity",   "relu",    "max_pool2d", "silu", "tanh"};

using Bits = std::vector<bool>;

Bits both(const Bits& a, const Bits& b) {
  Bits result(std::min(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = a[i] && b[i];
  return result;
}

// A missing parameter adds nothing, so all of its outputs count as masked.
Bits masked(const Parameter* parameter, std::int64_t outputs) {
  return parameter == nullptr ? Bits(static_cast<std::size_t>(outputs), true) : masked_outputs(*parameter);
}

// What a layer passes to the next. `zero` is empty if nothing is known of the values.
struct Stream {
  std::size_t group = 0;
  Bits zero = {};
  const Module* made_by = nullptr;  // the convolution or linear layer that made it, if no layer is in between
};

class Walker {
 public:
  Stream visit(const Module& module, const Stream& x) {
    if (dynamic_cast<const Sequential*>(&module) != nullptr) return visit_chain(module, x);
    if (const auto* const block = dynamic_cast<const ResidualBlock*>(&module)) return visit_block(*block, x);
    if (dynamic_cast<const Residual*>(&module) != nullptr) return visit_sum(module, x);
    if (const auto* const conv = dynamic_cast<const Conv2d*>(&module)) return visit_convolution(*conv, x);
    if (const auto* const linear = dynamic_cast<const Linear*>(&module)) {
      return make(module, x, linear->options().out, both(masked_outputs(linear->weight()), masked_bias(*linear)));
    }
    if (dynamic_cast<const BatchNorm*>(&module) != nullptr) return visit_norm(module, x);
    if (std::ranges::find(kKeepZeros, module.kind()) != kKeepZeros.end()) return {x.group, x.zero};
    if (module.kind() == "sigmoid") return {x.group};
    return visit_unknown(module, x);
  }

  std::size_t new_group(std::int64_t channels, std::string fixed = {}) {
    groups_.push_back({.channels = channels, .fixed = std::move(fixed)});
    joined_.push_back(joined_.size());
    return joined_.size() - 1;
  }
  void fix(std::size_t group, const std::string& why) {
    std::string& fixed = groups_[root_of(group)].fixed;
    if (fixed.empty()) fixed = why;
  }

  ChannelFlow finish(const Stream& output) {
    fix(output.group, "are the network's output");
    for (ChannelGroup& group : groups_) group.zero = Bits(static_cast<std::size_t>(group.channels), true);
    for (const Stream& read : reads_) {
      Bits& zero = groups_[root_of(read.group)].zero;
      for (std::size_t c = 0; c < zero.size(); ++c) zero[c] = zero[c] && c < read.zero.size() && read.zero[c];
    }
    for (LayerChannels& layer : layers_) {
      layer.in = root_of(layer.in);
      layer.out = root_of(layer.out);
    }
    return {std::move(groups_), std::move(layers_), std::move(normed_), root_of(output.group)};
  }

 private:
  template <class Layer>
  static Bits masked_bias(const Layer& layer) {
    return masked(layer.bias(), layer.options().out);
  }

  std::size_t root_of(std::size_t group) const {
    while (joined_[group] != group) group = joined_[group];
    return group;
  }

  Stream add(const Stream& a, const Stream& b) {
    const std::size_t from = root_of(b.group), to = root_of(a.group);
    if (from != to) {
      joined_[from] = to;
      groups_[to].channels = std::max(groups_[to].channels, groups_[from].channels);
      fix(to, groups_[from].fixed);
    }
    return {to, both(a.zero, b.zero)};
  }

  // Records a layer in which each output reads all of x.
  Stream make(const Module& layer, const Stream& x, std::int64_t outputs, Bits zero) {
    reads_.push_back(x);
    const std::size_t group = new_group(outputs);
    layers_.push_back({layer.path(), x.group, group});
    return {group, std::move(zero), &layer};
  }

  Stream visit_unknown(const Module& module, const Stream& x) {
    fix(x.group, str("are read by '", module.path(), "' (", module.kind(), ')'));
    return {new_group(0, str("are made by '", module.path(), "' (", module.kind(), ')'))};
  }

  Stream visit_chain(const Module& chain, Stream x) {
    for (const Module::Child& child : chain.children()) x = visit(*child.module, x);
    return x;
  }

  Stream visit_sum(const Module& sum, const Stream& x) {
    const Stream body = visit(sum.child("body"), x);
    return add(body, sum.has_child("shortcut") ? visit(sum.child("shortcut"), x) : x);
  }

  Stream visit_block(const ResidualBlock& block, const Stream& x) {
    Stream y = x;
    for (int i = 1; i <= block.convolutions(); ++i) {
      y = visit(block.child(str("bn", i)), visit(block.child(str("conv", i)), y));
    }
    const ResidualBlockConfig& config = block.options();
    layers_.push_back({block.path(), x.group, y.group});
    if (config.shortcut == "projection") return add(y, visit(block.child("downsample"), x));
    if (config.in == config.out) return add(y, x);
    const std::string why = str("are padded by the option_a shortcut of '", block.path(), '\'');
    fix(x.group, why);
    fix(y.group, why);
    return {y.group};
  }

  Stream visit_convolution(const Conv2d& conv, const Stream& x) {
    const Conv2dConfig& config = conv.options();
    const Bits rows = masked_outputs(conv.weight());
    if (config.groups == 1) return make(conv, x, config.out, both(rows, masked_bias(conv)));
    if (config.groups != config.in || config.in != config.out) {
      Stream y = visit_unknown(conv, x);
      y.made_by = &conv;
      return y;
    }
    layers_.push_back({conv.path(), x.group, x.group});
    groups_[root_of(x.group)].channels = config.in;
    Bits zero = rows;
    for (std::size_t c = 0; c < x.zero.size(); ++c) zero[c] = zero[c] || x.zero[c];
    return {x.group, both(zero, masked_bias(conv)), &conv};
  }

  // The outputs are zero where scale and shift are masked, whatever the norm reads.
  Stream visit_norm(const Module& norm, const Stream& x) {
    layers_.push_back({norm.path(), x.group, x.group});
    if (x.made_by != nullptr) normed_.push_back({x.made_by->path(), norm.path()});
    const Bits features = both(masked_outputs(norm.parameter("weight")), masked_outputs(norm.parameter("bias")));
    Bits zero(static_cast<std::size_t>(groups_[root_of(x.group)].channels), true);
    for (std::size_t i = 0; i < features.size() && !zero.empty(); ++i) {
      const std::size_t c = i % zero.size();
      zero[c] = zero[c] && features[i];
    }
    return {x.group, std::move(zero)};
  }

  std::vector<ChannelGroup> groups_;
  std::vector<std::size_t> joined_;  // the group that each group was merged into; its own index if it was not
  std::vector<Stream> reads_;
  std::vector<LayerChannels> layers_;
  std::vector<NormedLayer> normed_;
};

}  // namespace

ChannelFlow channel_flow(const Module& root) {
  Walker walker;
  const Stream input{walker.new_group(0, "are the network's input")};
  return walker.finish(walker.visit(root, input));
}

std::vector<bool> masked_outputs(const Parameter& parameter) {
  const std::int64_t outputs = parameter.value().dim(0);
  if (!parameter.mask().defined()) return Bits(static_cast<std::size_t>(outputs), false);
  const Tensor mask = parameter.mask().to(Device::cpu()).contiguous();
  const std::int64_t size = mask.numel() / outputs;
  Bits masked;
  for (std::int64_t i = 0; i < outputs; ++i) {
    const std::uint8_t* const row = mask.data<std::uint8_t>() + i * size;
    masked.push_back(std::none_of(row, row + size, [](std::uint8_t kept) { return kept != 0; }));
  }
  return masked;
}

}  // namespace tessera
