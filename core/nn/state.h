// What a part of training needs to go on: named tensors and a small tree of scalars. Everything in a checkpoint is made of these.
#pragma once

#include <map>
#include <string>

#include "core/config/value.h"
#include "core/tensor.h"

namespace tessera {

struct State {
  std::map<std::string, Tensor> tensors;  // keyed by parameter or hook path, in sorted order
  Value meta = Value::map();
};

}  // namespace tessera
