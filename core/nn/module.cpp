#include "core/nn/module.h"

#include <algorithm>

#include "core/config/suggest.h"
#include "core/nn/attention_cache.h"
#include "core/support/counting.h"
#include "core/support/error.h"

namespace tessera {

namespace {

void count_tensors(const Module& module, LayerCost& row) {
  for (const auto& parameter : module.parameters()) {
    row.parameters += parameter->value().numel();
    row.weight_bytes += static_cast<std::int64_t>(parameter->value().bytes());
  }
  for (const auto& buffer : module.buffers()) row.weight_bytes += static_cast<std::int64_t>(buffer->value.bytes());
  for (const Module::Child& child : module.children()) count_tensors(*child.module, row);
}

}  // namespace

const Tensor* Context::find(std::string_view name) const {
  const auto found = std::ranges::find(inputs, name, &NamedTensor::name);
  return found == inputs.end() ? nullptr : &found->tensor;
}

std::int64_t Context::first_position() const { return cache == nullptr ? 0 : cache->length(); }

std::string join_path(std::string_view parent, std::string_view name) {
  return parent.empty() ? std::string(name) : str(parent, '.', name);
}

Var Module::operator()(const Var& x, const Context& context) {
  return run(x, [&] { return forward(x, context); });
}

void Module::set_path(const std::string& path) {
  path_ = keep_path(path);
  for (Child& child : children_) child.module->set_path(join_path(path, child.name));
}

bool Module::has_child(std::string_view name) const {
  return std::any_of(children_.begin(), children_.end(), [&](const Child& child) { return child.name == name; });
}

Module& Module::child(std::string_view name) const {
  for (const Child& child : children_) {
    if (child.name == name) return *child.module;
  }
  std::string known;
  for (const Child& child : children_) known += str(' ', child.name);
  throw InternalError(str("module '", path(), "' (", kind(), ") has no child '", name, "'; children:", known));
}

Module& Module::add_child(std::string name, std::unique_ptr<Module> child) {
  TESSERA_CHECK(!name.empty() && name.find('.') == std::string::npos, ConfigError, "module '", path(), "': child name '", name,
                "' is empty or has a dot");
  TESSERA_CHECK(!has_child(name), ConfigError, "module '", path(), "': two children are named '", name, "'");
  child->set_path(join_path(path(), name));
  child->parent_ = this;
  children_.push_back({std::move(name), std::move(child)});
  return *children_.back().module;
}

std::unique_ptr<Module> Module::replace_child(std::string_view name, std::unique_ptr<Module> replacement) {
  child(name);
  for (Child& child : children_) {
    if (child.name != name) continue;
    replacement->set_path(child.module->path());
    replacement->parent_ = this;
    std::swap(child.module, replacement);
  }
  replacement->set_path("");
  replacement->parent_ = nullptr;
  return replacement;
}

Parameter& Module::parameter(std::string_view name) const {
  for (const auto& parameter : parameters_) {
    if (parameter->name() == name) return *parameter;
  }
  throw InternalError(str("module '", path(), "' (", kind(), ") has no parameter '", name, "'"));
}

Parameter& Module::add_parameter(std::string name, Tensor value, ParameterRole role) {
  return *parameters_.emplace_back(std::make_unique<Parameter>(std::move(name), std::move(value), role));
}

Buffer& Module::add_buffer(std::string name, Tensor value) {
  return *buffers_.emplace_back(std::make_unique<Buffer>(Buffer{std::move(name), std::move(value)}));
}

void Module::trace_leaf(Trace* trace, const Shape& input, const Shape& output, std::int64_t macs) const {
  if (trace == nullptr) return;
  std::int64_t total = macs;
  for (const LayerCost& row : *trace) total = sum_of({total, row.macs});
  TESSERA_CHECK(total < kUncounted, ShapeError, kind(), " '", path(), "': input is ", input, ", output is ", output,
                ": too many multiply-adds to count; a network must have fewer than 2^63 - 1");
  LayerCost row{path(), std::string(kind()), input, output, 0, macs, 0};
  count_tensors(*this, row);
  trace->push_back(std::move(row));
}

void for_each_module(Module& root, const std::function<void(Module&)>& visit) {
  visit(root);
  for (const Module::Child& child : root.children()) for_each_module(*child.module, visit);
}

std::vector<NamedParameter> named_parameters(Module& root) {
  std::vector<NamedParameter> all;
  for_each_module(root, [&](Module& module) {
    for (const auto& parameter : module.parameters())
      all.push_back({join_path(module.path(), parameter->name()), parameter.get()});
  });
  return all;
}

std::vector<NamedBuffer> named_buffers(Module& root) {
  std::vector<NamedBuffer> all;
  for_each_module(root, [&](Module& module) {
    for (const auto& buffer : module.buffers()) all.push_back({join_path(module.path(), buffer->name), buffer.get()});
  });
  return all;
}

Module& find_module(Module& root, std::string_view path) {
  Module* found = nullptr;
  std::vector<std::string> known;
  for_each_module(root, [&](Module& module) {
    if (module.path() == path) found = &module;
    known.push_back(module.path());
  });
  if (found != nullptr) return *found;
  const std::vector<std::string_view> names(known.begin(), known.end());
  std::string message = str("no module '", path, "'");
  for (const std::string& near : nearest_names(path, names)) message += str("; did you mean '", near, "'?");
  throw ConfigError(message);
}

std::unique_ptr<Module> replace_module(std::unique_ptr<Module>& root, std::string_view path,
                                       std::unique_ptr<Module> replacement) {
  if (path.empty()) {
    std::swap(root, replacement);
    return replacement;
  }
  const std::size_t dot = path.rfind('.');
  Module& parent = dot == std::string_view::npos ? *root : find_module(*root, path.substr(0, dot));
  return parent.replace_child(dot == std::string_view::npos ? path : path.substr(dot + 1), std::move(replacement));
}

void initialize(Module& root, std::uint64_t seed) {
  for_each_module(root, [&](Module& module) { module.reset_parameters(seed); });
}

void move_to(Module& root, Device device) {
  for (const NamedParameter& entry : named_parameters(root)) entry.parameter->move_to(device);
  for (const NamedBuffer& entry : named_buffers(root)) entry.buffer->value = entry.buffer->value.to(device);
}

Device device_of(Module& root) {
  const std::vector<NamedParameter> parameters = named_parameters(root);
  if (!parameters.empty()) return parameters.front().parameter->value().device();
  const std::vector<NamedBuffer> buffers = named_buffers(root);
  return buffers.empty() ? Device() : buffers.front().buffer->value.device();
}

std::string first_with_parameters(const Trace& trace) {
  const auto found = std::ranges::find_if(trace, [](const LayerCost& row) { return row.parameters > 0; });
  return found == trace.end() ? std::string() : found->path;
}

Cost total_cost(const Module& root, const Shape& input) {
  Trace trace;
  root.output_shape(input, &trace);
  Cost cost;
  for (const LayerCost& layer : trace) {
    cost.parameters += layer.parameters;
    cost.macs += layer.macs;
    cost.weight_bytes += layer.weight_bytes;
  }
  return cost;
}

}  // namespace tessera
