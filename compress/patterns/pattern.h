// One sparse pattern of a weight: which elements may be kept together, and which of those sets scores best. A pattern is a file
// pair of this folder; compress/patterns/builtin.h lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace tessera {

class Pattern {
 public:
  virtual ~Pattern() = default;

  virtual std::string_view name() const = 0;
  // Why a weight of this shape cannot have it; "" where it can.
  virtual std::string why_not(const Shape& weight) const = 0;

  // The masks (u8 of the scores' shapes, 1 = kept) of weights that share a budget: the best-scored sets of the pattern with
  // `kept` elements; patterns with units keep as many whole ones as fit. Ties keep the first. Scores are f32 on
  // the CPU, contiguous, not below 0 except for -1, which marks an element that is gone. It is not kept, so that each mask of a
  // series with falling `kept` lies within the one before. Throws NumericError on NaN, ConfigError where `kept` is negative or
  // more than there is, or a weight cannot have the pattern.
  std::vector<Tensor> project(std::span<const Tensor> scores, std::int64_t kept) const;

  // Whether weights of these shapes that share a budget consist only of units that project() keeps in any case, so that none of
  // them can be pruned.
  virtual bool keeps_all(std::span<const Shape>) const { return false; }

 protected:
  // Sets what is kept in masks of zeros. `kept` is no more than is there and not gone.
  virtual void choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const = 0;
};

}  // namespace tessera
