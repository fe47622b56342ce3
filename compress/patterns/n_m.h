// N of each M: of M inputs of a tap that follow each other, the N of highest scores. How many elements are kept follows from N
// and M, whatever is asked.
#pragma once

#include <optional>

#include "compress/patterns/pattern.h"

namespace tessera {

struct NOfM {
  std::int64_t n = 2, m = 4;
  double sparsity() const { return 1 - static_cast<double>(n) / static_cast<double>(m); }
};

// Parses "2:4". Empty where the text is no N:M with 0 < N < M.
std::optional<NOfM> parse_n_m(std::string_view text);

class NOfMPattern final : public Pattern {
 public:
  static constexpr std::string_view kName = "n_m";
  explicit NOfMPattern(const NOfM& config) : config_(config) {}

  std::string_view name() const override { return kName; }
  std::string why_not(const Shape& weight) const override;

 protected:
  void choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const override;

 private:
  NOfM config_;
};

}  // namespace tessera
