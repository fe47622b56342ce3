#include "compress/formats/sparse_layer.h"

#include <algorithm>

#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/factored_conv2d.h"
#include "layers/sequential.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"
#include "layers/svd_linear.h"

namespace tessera {
namespace {

Tensor own_copy(const Tensor& value) { return value.defined() ? value.to(Device::cpu()).clone() : Tensor(); }

void copy_parameter(const Parameter& from, Parameter& to) {
  to.set_value(own_copy(from.value()));
  to.set_mask(own_copy(from.mask()));
  to.set_trainable(from.trainable());
}

// Copies the parameters and buffers of a module to another one with the same config.
void copy_own(const Module& from, Module& to) {
  for (std::size_t i = 0; i < from.parameters().size(); ++i) copy_parameter(*from.parameters()[i], *to.parameters()[i]);
  for (std::size_t i = 0; i < from.buffers().size(); ++i) to.buffers()[i]->value = own_copy(from.buffers()[i]->value);
}

const Parameter* bias_of(const Module& module) {
  const auto found = std::ranges::find(module.parameters(), ParameterRole::bias, [](const auto& each) { return each->role(); });
  return found == module.parameters().end() ? nullptr : found->get();
}

void add_part(Sequential& chain, std::unique_ptr<Module> part) { chain.add_child(str(chain.children().size()), std::move(part)); }

std::unique_ptr<Module> factor_layer(const Parameter& factor, const Parameter* bias) {
  const Shape& shape = factor.value().shape();
  auto dense = std::make_unique<Linear>(LinearConfig{.in = shape[1], .out = shape[0], .bias = bias != nullptr});
  copy_parameter(factor, dense->weight());
  if (bias != nullptr) copy_parameter(*bias, *dense->bias());
  if (!factor.mask().defined()) return dense;
  return SparseLinear::of(*dense);
}

std::unique_ptr<Module> factor_layer(const FactoredConv2d::Filter& filter, const Parameter* bias) {
  const Shape& shape = filter.parameter->value().shape();
  const Conv2dOptions& o = filter.options;
  auto dense = std::make_unique<Conv2d>(Conv2dConfig{.in = shape[3] * o.groups,
                                                     .out = shape[0],
                                                     .kernel = {shape[1], shape[2]},
                                                     .stride = o.stride,
                                                     .padding = o.padding,
                                                     .dilation = o.dilation,
                                                     .groups = o.groups,
                                                     .bias = bias != nullptr});
  copy_parameter(*filter.parameter, dense->weight());
  if (bias != nullptr) copy_parameter(*bias, *dense->bias());
  if (!filter.parameter->mask().defined() || o.groups != 1) return dense;
  return SparseConv2d::of(*dense);
}

std::unique_ptr<Module> sparse_chain(const FactoredConv2d& factored) {
  auto chain = std::make_unique<Sequential>();
  const auto filters = factored.filters();
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const bool last = i + 1 == filters.size();
    add_part(*chain, factor_layer(filters[i], last ? bias_of(factored) : nullptr));
    if (last || !factored.has_norms()) continue;
    const auto& norm = dynamic_cast<const BatchNorm&>(*factored.children()[i].module);
    auto copy = std::make_unique<BatchNorm>(norm.options());
    copy_own(norm, *copy);
    add_part(*chain, std::move(copy));
  }
  return chain;
}

std::unique_ptr<Module> sparse_chain(const SvdLinear& factored) {
  auto chain = std::make_unique<Sequential>();
  add_part(*chain, factor_layer(factored.parameter("in_factor"), nullptr));
  add_part(*chain, factor_layer(factored.parameter("out_factor"), bias_of(factored)));
  return chain;
}

std::string why_no_factor(const FactoredConv2d& factored) {
  std::string why = "none of its factors has a mask; a prune block makes them";
  for (const FactoredConv2d::Filter& filter : factored.filters()) {
    if (!filter.parameter->mask().defined()) continue;
    if (filter.options.groups == 1) return "";
    why = "of its factors only those of several groups have a mask; sparse kernels need 1";
  }
  return why;
}

}  // namespace

std::vector<const Parameter*> sparse_candidates(const Module& module) {
  if (const auto* const conv = dynamic_cast<const Conv2d*>(&module)) return {&conv->weight()};
  if (const auto* const linear = dynamic_cast<const Linear*>(&module)) return {&linear->weight()};
  if (dynamic_cast<const SvdLinear*>(&module) != nullptr) {
    return {&module.parameter("in_factor"), &module.parameter("out_factor")};
  }
  std::vector<const Parameter*> factors;
  if (const auto* const factored = dynamic_cast<const FactoredConv2d*>(&module)) {
    for (const FactoredConv2d::Filter& filter : factored->filters()) factors.push_back(filter.parameter);
  }
  return factors;
}

std::string why_not_sparse(const Module& module) {
  if (const auto* const factored = dynamic_cast<const FactoredConv2d*>(&module)) return why_no_factor(*factored);
  const auto* const conv = dynamic_cast<const Conv2d*>(&module);
  if (conv != nullptr && conv->options().groups != 1) {
    return str("has ", conv->options().groups, " groups; sparse kernels need 1");
  }
  const std::vector<const Parameter*> weights = sparse_candidates(module);
  if (std::ranges::any_of(weights, [](const Parameter* weight) { return weight->mask().defined(); })) return "";
  return weights.size() == 1 ? "its weight has no mask; a prune block makes one"
                             : "none of its factors has a mask; a prune block makes them";
}

std::unique_ptr<Module> sparse_layer(const Module& module) {
  if (const auto* const factored = dynamic_cast<const FactoredConv2d*>(&module)) return sparse_chain(*factored);
  if (const auto* const factored = dynamic_cast<const SvdLinear*>(&module)) return sparse_chain(*factored);
  if (const auto* const conv = dynamic_cast<const Conv2d*>(&module)) return SparseConv2d::of(*conv);
  return SparseLinear::of(dynamic_cast<const Linear&>(module));
}

}  // namespace tessera
