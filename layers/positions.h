// Learned positions (Gehring et al., 2017): adds row p of a table to what stands at position p of a sequence. x [n, t, width] ->
// y of the same shape; x begins behind the positions of the context's cache.
#pragma once

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct PositionsConfig {
  std::int64_t length = 1;
  std::int64_t width = 1;
  void fields(Fields& f);
};

// Parameter: weight [length, width], N(0, 0.02^2).
class Positions final : public Module {
 public:
  using Config = PositionsConfig;
  explicit Positions(const PositionsConfig& config);

  std::string_view kind() const override { return "positions"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;  // throws ShapeError beyond the last position
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;
  std::int64_t sequence_limit() const override { return config_.length; }

 private:
  void check(const Shape& input, std::int64_t first) const;

  PositionsConfig config_;
  Parameter& weight_;
};

}  // namespace tessera
