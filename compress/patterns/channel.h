// Whole outputs: all of their weights. One output of each weight is kept at least, so that no layer goes.
#pragma once

#include "compress/patterns/pattern.h"

namespace tessera {

class ChannelPattern final : public Pattern {
 public:
  static constexpr std::string_view kName = "channel";
  std::string_view name() const override { return kName; }
  std::string why_not(const Shape& weight) const override;

 protected:
  void choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const override;
};

}  // namespace tessera
