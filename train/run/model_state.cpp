#include "train/run/model_state.h"

#include <set>

#include "core/mask_bits.h"
#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"

namespace tessera {
namespace {

constexpr const char* kMaskSuffix = ".mask";

std::string fault(const std::string& name, const State& state, const Tensor& own) {
  const auto found = state.tensors.find(name);
  if (found == state.tensors.end()) return str("\n  missing: ", name, ' ', own.shape());
  const Tensor& stored = found->second;
  if (stored.shape() == own.shape() && stored.dtype() == own.dtype()) return {};
  return str("\n  mismatched: ", name, " is ", describe(stored), ", the model needs ", describe(own));
}

// A mask may be absent. The parameter is then dense.
std::string mask_fault(const std::string& name, const State& state, const Tensor& value) {
  const auto found = state.tensors.find(name);
  const Shape packed{packed_bytes(value.numel())};
  if (found == state.tensors.end() || (found->second.shape() == packed && found->second.dtype() == DType::u8)) return {};
  return str("\n  mismatched: ", name, " is ", describe(found->second), ", the model needs u8 ", packed);
}

Tensor copy_on(Device device, const Tensor& tensor) { return tensor.device() == device ? tensor.clone() : tensor.to(device); }

}  // namespace

State model_state(Module& model) {
  State state;
  for (const NamedParameter& entry : named_parameters(model)) {
    state.tensors[entry.path] = entry.parameter->value();
    if (entry.parameter->mask().defined()) state.tensors[entry.path + kMaskSuffix] = packed_bits(entry.parameter->mask());
  }
  for (const NamedBuffer& entry : named_buffers(model)) state.tensors[entry.path] = entry.buffer->value;
  return state;
}

void load_model_state(Module& model, const State& state) {
  const auto parameters = named_parameters(model);
  const auto buffers = named_buffers(model);
  std::string faults;
  std::set<std::string> known;
  for (const NamedParameter& entry : parameters) {
    faults += fault(entry.path, state, entry.parameter->value());
    faults += mask_fault(entry.path + kMaskSuffix, state, entry.parameter->value());
    known.insert(entry.path);
    known.insert(entry.path + kMaskSuffix);
  }
  for (const NamedBuffer& entry : buffers) {
    faults += fault(entry.path, state, entry.buffer->value);
    known.insert(entry.path);
  }
  for (const auto& [name, tensor] : state.tensors) {
    if (!known.contains(name)) faults += str("\n  unexpected: ", name, ' ', tensor.shape());
  }
  TESSERA_CHECK(faults.empty(), IoError, "weights do not fit the model:", faults);

  for (const NamedParameter& entry : parameters) {
    entry.parameter->set_value(copy_on(entry.parameter->value().device(), state.tensors.at(entry.path)));
    const auto mask = state.tensors.find(entry.path + kMaskSuffix);
    entry.parameter->set_mask(mask == state.tensors.end() ? Tensor()
                                                          : unpacked_bits(mask->second, entry.parameter->value().shape()));
  }
  for (const NamedBuffer& entry : buffers) {
    entry.buffer->value.copy_from(state.tensors.at(entry.path).to(entry.buffer->value.device()));
  }
  for_each_module(model, [](Module& module) { module.buffers_changed(); });
}

std::unique_ptr<Module> copy_of(Module& model) {
  std::unique_ptr<Module> copy = rebuild(describe(model), builtin_layers());
  move_to(*copy, device_of(model));
  load_model_state(*copy, model_state(model));
  return copy;
}

}  // namespace tessera
