// Where two saved states differ, tensor by tensor, to the byte.
#pragma once

#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/nn/state.h"

namespace tessera {

struct TensorDifference {
  std::string name;
  std::string what;  // "only in a: f32 [3]", "f32 [3], f32 [4]"; empty when only values differ
  // Greatest |a - b|: 0 where only the signs of zeros or the bits of NaNs do, infinite where one side alone is NaN.
  double max_abs = 0;

  void fields(Fields& f);
};

// Sorted by name. Tensors of equal bytes are left out.
std::vector<TensorDifference> tensor_differences(const State& a, const State& b);

// Greatest first, those that have no counterpart before all; `most` of them at most.
std::vector<TensorDifference> greatest(std::vector<TensorDifference> differences, std::size_t most);

}  // namespace tessera
