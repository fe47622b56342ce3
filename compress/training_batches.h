// Batches of the training data, for passes that look at what layers see.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/dtype.h"
#include "core/nn/named_tensor.h"

namespace tessera {

struct TrainingBatches {
  // Parts of batch i, x first (see layers/scores.h); the same bytes in every call; on the network's device.
  std::function<std::vector<NamedTensor>(std::int64_t i)> parts;
  DType compute = DType::f32;  // what activations are in
};

}  // namespace tessera
