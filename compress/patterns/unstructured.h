// Any set of elements: those of the highest scores.
#pragma once

#include "compress/patterns/pattern.h"

namespace tessera {

class UnstructuredPattern final : public Pattern {
 public:
  static constexpr std::string_view kName = "unstructured";
  std::string_view name() const override { return kName; }
  std::string why_not(const Shape&) const override { return ""; }

 protected:
  void choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const override;
};

}  // namespace tessera
