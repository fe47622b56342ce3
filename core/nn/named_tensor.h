// A tensor and what it is called: a part of a batch, which layers ask for by its name.
#pragma once

#include <string>

#include "core/tensor.h"

namespace tessera {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace tessera
