#include "optim/optimizer.h"

#include <algorithm>
#include <utility>

#include "core/support/error.h"

namespace tessera {

namespace {

bool same_layout(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && a.dtype() == b.dtype(); }

}  // namespace

void Optimizer::bind(const std::vector<NamedParameter>& parameters) {
  entries_.clear();
  for (const NamedParameter& named : parameters) {
    entries_.push_back({named.path, named.parameter, fresh_slots(*named.parameter)});
  }
}

void Optimizer::step(const StepState& step_state, const Tensor& norm) {
  step_where([](const Parameter&) { return true; }, step_state, norm);
}

void Optimizer::step(const StepState& step_state, const Tensor& norm, std::span<Parameter* const> of) {
  step_where([&](const Parameter& parameter) { return std::ranges::find(of, &parameter) != of.end(); }, step_state, norm);
}

void Optimizer::step_where(const std::function<bool(const Parameter&)>& taken, const StepState& step_state, const Tensor& norm) {
  std::vector<Update> updates;
  updates.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    const Parameter& parameter = *entry.parameter;
    if (!parameter.trainable() || !parameter.grad().defined() || !taken(parameter)) continue;
    TESSERA_CHECK(parameter.value().is_contiguous(), InternalError, name(), ": ", entry.path, " is not contiguous");
    const Tensor mask = parameter.mask().defined() ? parameter.mask().contiguous() : Tensor();
    updates.push_back({parameter, {parameter.value(), parameter.grad().contiguous(), mask}, entry.slots});
  }
  if (!updates.empty()) return update(updates, step_state.tensor(), norm);
  if (norm.defined()) norm.fill(0.0);
}

State Optimizer::state() const {
  State state;
  state.meta.set("name", name());
  for (const Entry& entry : entries_) {
    for (const auto& [slot, tensor] : entry.slots) state.tensors.emplace(str(entry.path, '.', slot), tensor.clone());
  }
  return state;
}

void Optimizer::load_state(const State& state) {
  const Value* saved = state.meta.find("name");
  TESSERA_CHECK(saved != nullptr && *saved == Value(name()), IoError, name(), ": the saved state is ",
                saved != nullptr ? to_json(*saved) : std::string("of no optimiser"));
  std::size_t expected = 0;
  for (const Entry& entry : entries_) {
    for (const auto& [slot, tensor] : entry.slots) {
      const std::string key = str(entry.path, '.', slot);
      const auto found = state.tensors.find(key);
      TESSERA_CHECK(found != state.tensors.end(), IoError, name(), ": the saved state has no tensor '", key, "'");
      TESSERA_CHECK(same_layout(found->second, tensor), IoError, name(), ": '", key, "' is ", describe(found->second),
                    ", needs ", describe(tensor));
      ++expected;
    }
  }
  TESSERA_CHECK(expected == state.tensors.size(), IoError, name(), ": the saved state has ", state.tensors.size(),
                " tensors, the model needs ", expected);
  for (const Entry& entry : entries_) {
    for (const auto& [slot, tensor] : entry.slots) {
      tensor.copy_from(state.tensors.at(str(entry.path, '.', slot)).to(tensor.device()));
    }
  }
}

}  // namespace tessera
