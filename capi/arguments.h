// Buffers of a caller in C as tensors of ours.
#pragma once

#include <cstdint>
#include <vector>

#include "capi/trained_network.h"
#include "include/tessera.h"

namespace tessera::capi {

// The shape of the network's first input among these. Throws ConfigError, ShapeError or DTypeError naming the input, what it is
// and what the network needs; `data` is not looked at.
Shape check_inputs(const std::vector<Input>& inputs, const tessera_tensor* given, std::int32_t count);

// The same, as tensors over the callers' memory, the network's first input in front; pixels are copied and normalised.
std::vector<NamedTensor> tensors_of(const std::vector<Input>& inputs, const tessera_tensor* given, std::int32_t count);

// The shape of the only output. Throws the same.
Shape check_output(const tessera_tensor* given, std::int32_t count);

}  // namespace tessera::capi
