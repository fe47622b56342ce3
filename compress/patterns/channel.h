// Whole outputs: all of their weights. Each weight keeps at least one output, so that no layer disappears, and at least a tenth
// of the share that is to be kept of all, so that in a budget of several weights none becomes too narrow. Scores of layers of
// different sizes compare badly, and a global ranking could otherwise take all of one layer ("layer collapse", Tanaka et al.,
// NeurIPS 2020).
#pragma once

#include "compress/patterns/pattern.h"

namespace tessera {

class ChannelPattern final : public Pattern {
 public:
  static constexpr std::string_view kName = "channel";
  static constexpr double kLeastShare = 0.1;  // of its outputs, as a fraction of the share of elements that is asked
  std::string_view name() const override { return kName; }
  std::string why_not(const Shape& weight) const override;
  bool keeps_all(std::span<const Shape> weights) const override;  // of one output each

 protected:
  void choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const override;
};

}  // namespace tessera
