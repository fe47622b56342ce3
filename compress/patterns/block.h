// Whole blocks: some outputs that follow each other by some inputs of one kernel tap. At the ends of outputs and inputs, where
// the sizes do not divide, blocks are smaller. One block at least is kept where any element is to be.
#pragma once

#include "compress/patterns/pattern.h"
#include "core/support/extent.h"

namespace tessera {

class BlockPattern final : public Pattern {
 public:
  static constexpr std::string_view kName = "block";
  explicit BlockPattern(const Extent& block) : block_(block) {}  // h outputs by w inputs

  std::string_view name() const override { return kName; }
  std::string why_not(const Shape& weight) const override;
  bool keeps_all(std::span<const Shape> weights) const override;  // of one block

 protected:
  void choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const override;

 private:
  Extent block_;
};

}  // namespace tessera
