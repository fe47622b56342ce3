#include "core/nn/hook.h"

#include <algorithm>

#include "core/support/error.h"

namespace tessera {

std::size_t StepSlots::add(std::string_view name) {
  TESSERA_CHECK(std::ranges::find(names_, name) == names_.end(), InternalError, "step state: the slot '", name, "' is taken");
  TESSERA_CHECK(names_.size() < kStepSlots, InternalError, "step state: no slot is left for '", name, "' of ", kStepSlots);
  names_.emplace_back(name);
  return names_.size() - 1;
}

}  // namespace tessera
