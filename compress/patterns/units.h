// What the patterns whose elements are kept or go in units have in common.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/patterns/elements.h"

namespace tessera {

// Elements of one weight that are kept or go together: some of its outputs by positions begin <= position < end. Where some of
// them are gone, the others stand for the unit.
struct Unit {
  std::size_t weight = 0;  // its index
  std::span<const std::int64_t> outputs;
  std::int64_t begin = 0, end = 0;
  double score = 0;  // L2 norm of its elements' scores / the number of its elements
  std::int64_t present = 0;  // elements that are not gone
  bool must = false;  // kept whatever is asked
};

// With its score and count.
Unit scored(Unit unit, std::span<const Tensor> scores);

// 0, 1, ... up to the largest number of outputs: a unit of neighbouring outputs has its `outputs` as a part of this list.
std::vector<std::int64_t> all_outputs(std::span<const Tensor> scores);

// Every output of every weight by itself, but those that are gone; `outputs` is all_outputs() and outlives them.
std::vector<Unit> output_units(std::span<const Tensor> scores, std::span<const std::int64_t> outputs);

// What must be kept, then the highest scores; of equal ones the first.
void sort_best_first(std::vector<Unit>& units);

// Sets the best units in the masks until the next would make more than `kept` elements.
void keep_best(std::vector<Unit> units, std::int64_t kept, std::span<const Tensor> scores, std::span<const Tensor> masks);

}  // namespace tessera
