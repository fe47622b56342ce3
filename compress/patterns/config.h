// Which sparse pattern, and its parameters: keys of the block that has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compress/patterns/n_m.h"
#include "core/config/fields.h"

namespace tessera {

struct PatternConfig {
  std::string pattern = "unstructured";
  std::optional<Extent> block = {};  // 16 outputs by 16 inputs
  std::optional<std::string> n_m = {};  // 2:4
  std::optional<std::int64_t> group = {};  // 64 outputs a tile
  std::optional<double> extra = {};  // 0.05
  std::optional<bool> coupled = {};  // false
  void fields(Fields& f);

  double extra_or_default() const { return extra.value_or(0.05); }
  NOfM n_m_or_default() const;  // throws ConfigError where the text is no N:M
  // The sparsity that the pattern itself sets: for n_m it follows from N and M. 0 for patterns that take the sparsity asked for.
  double own_sparsity() const;
};

}  // namespace tessera
