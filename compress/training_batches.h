// Batches of the training data, for passes that look at what layers see.
#pragma once

#include <cstdint>
#include <functional>

#include "core/dtype.h"
#include "core/tensor.h"

namespace tessera {

struct TrainingBatches {
  std::function<Tensor(std::int64_t i)> x;  // batch i, the same bytes in every call; on the network's device
  DType compute = DType::f32;  // what activations are in
};

}  // namespace tessera
