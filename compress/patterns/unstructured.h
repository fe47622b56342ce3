// Any set of elements: those of the highest scores.
#pragma once

#include "compress/patterns/pattern.h"

namespace tessera {

class UnstructuredPattern final : public Pattern {
 public:
  std::string_view name() const override { return "unstructured"; }
  std::string why_not(const Shape&) const override { return ""; }
  std::vector<Tensor> project(std::span<const Tensor> scores, std::int64_t kept) const override;
};

}  // namespace tessera
