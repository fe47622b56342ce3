#include "optim/optimizer.h"

#include <utility>

#include "core/support/error.h"

namespace tessera {

namespace {

bool is_below(std::string_view path, std::string_view ancestor) {
  if (ancestor.empty() || path == ancestor) return true;
  return path.size() > ancestor.size() && path.starts_with(ancestor) && path[ancestor.size()] == '.';
}

bool same_layout(const Tensor& a, const Tensor& b) { return a.shape() == b.shape() && a.dtype() == b.dtype(); }

}  // namespace

std::string changed_path(const std::string& path, const std::vector<ModelChange>& changes) {
  const ModelChange* nearest = nullptr;
  for (const ModelChange& change : changes) {
    if (!is_below(path, change.old_path)) continue;
    if (nearest == nullptr || change.old_path.size() > nearest->old_path.size()) nearest = &change;
  }
  if (nearest == nullptr) return path;
  if (nearest->new_path.empty()) return {};
  if (nearest->old_path.empty()) return join_path(nearest->new_path, path);
  return nearest->new_path + path.substr(nearest->old_path.size());
}

void Optimizer::bind(const std::vector<NamedParameter>& parameters) {
  entries_.clear();
  for (const NamedParameter& named : parameters) {
    entries_.push_back({named.path, named.parameter, fresh_slots(*named.parameter)});
  }
}

void Optimizer::step(const StepState& step_state) {
  std::vector<Update> updates;
  updates.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    const Parameter& parameter = *entry.parameter;
    if (!parameter.trainable() || !parameter.grad().defined()) continue;
    TESSERA_CHECK(parameter.value().is_contiguous(), InternalError, name(), ": ", entry.path, " is not contiguous");
    const Tensor mask = parameter.mask().defined() ? parameter.mask().contiguous() : Tensor();
    updates.push_back({parameter, {parameter.value(), parameter.grad().contiguous(), mask}, entry.slots});
  }
  if (!updates.empty()) update(updates, step_state.tensor());
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

void Optimizer::rebind(const std::vector<NamedParameter>& parameters, const std::vector<ModelChange>& changes) {
  std::map<std::string, Slots> survivors;
  for (Entry& entry : entries_) {
    const std::string path = changed_path(entry.path, changes);
    if (!path.empty()) survivors.emplace(path, std::move(entry.slots));
  }
  bind(parameters);
  for (Entry& entry : entries_) {
    const auto survivor = survivors.find(entry.path);
    if (survivor == survivors.end()) continue;
    for (auto& [slot, tensor] : entry.slots) {
      Tensor& kept = survivor->second.at(slot);
      TESSERA_CHECK(same_layout(kept, tensor), InternalError, name(), ": ", entry.path, ".", slot, " was ", describe(kept),
                    ", is now ", describe(tensor), "; the pass must report the change");
      tensor = std::move(kept);
    }
  }
}

}  // namespace tessera
