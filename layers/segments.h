// The segment that each position belongs to, as BERT's token types (Devlin et al., 2019): adds the row of a table that the input
// "segments" names, i64 [n, t]; row 0 without that input. x [n, t, width] -> y of the same shape.
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct SegmentsConfig {
  std::int64_t types = 2;
  std::int64_t width = 1;
  void fields(Fields& f);
};

// Parameter: weight [types, width], N(0, 0.02^2).
class Segments final : public Module {
 public:
  using Config = SegmentsConfig;
  explicit Segments(const SegmentsConfig& config);

  std::string_view kind() const override { return "segments"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;  // throws ShapeError where "segments" does not fit x
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;

 private:
  SegmentsConfig config_;
  Parameter& weight_;
};

}  // namespace tessera
