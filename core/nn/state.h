// What a part of training needs to go on: named tensors and a small tree of scalars. Everything in a checkpoint is made of these.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/config/value.h"
#include "core/tensor.h"

namespace tessera {

struct State {
  std::map<std::string, Tensor> tensors;  // keyed by parameter or hook path, in sorted order
  Value meta = Value::map();
};

// Copies the saved tensors into those of the same names, whatever their device. Throws IoError, and changes nothing, on a
// missing, unexpected or mismatched one: "ema: the saved state has no tensor 'fc1.weight'".
void load_tensors(std::string_view owner, const std::map<std::string, Tensor>& saved, const std::map<std::string, Tensor>& into);

}  // namespace tessera
