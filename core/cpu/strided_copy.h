// Copies elements between strided tensors of one shape, converting the dtype. Float to integer truncates towards zero.
#pragma once

#include "core/tensor.h"

namespace tessera::cpu {

void strided_copy(const Tensor& source, const Tensor& target);

}  // namespace tessera::cpu
