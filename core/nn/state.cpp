#include "core/nn/state.h"

#include "core/support/error.h"

namespace tessera {

void load_tensors(std::string_view owner, const std::map<std::string, Tensor>& saved, const std::map<std::string, Tensor>& into) {
  TESSERA_CHECK(saved.size() == into.size(), IoError, owner, ": the saved state has ", saved.size(), " tensors, the model needs ",
                into.size());
  for (const auto& [name, tensor] : into) {
    const auto found = saved.find(name);
    TESSERA_CHECK(found != saved.end(), IoError, owner, ": the saved state has no tensor '", name, "'");
    TESSERA_CHECK(found->second.shape() == tensor.shape() && found->second.dtype() == tensor.dtype(), IoError, owner, ": '", name,
                  "' is ", describe(found->second), ", needs ", describe(tensor));
  }
  for (const auto& [name, tensor] : into) tensor.copy_from(saved.at(name).to(tensor.device()));
}

}  // namespace tessera
