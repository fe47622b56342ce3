// A linear layer whose weight is the table of an embedding elsewhere in the network (Press and Wolf, 2017, "Using the output
// embedding to improve language models"): y = x table^T + bias. x [..., in] -> y [..., out]. The table is one parameter, the
// embedding's, to which both uses give a gradient.
#pragma once

#include <string>

#include "core/config/fields.h"
#include "core/nn/module.h"

namespace tessera {

struct TiedLinearConfig {
  std::int64_t in = 1;
  std::int64_t out = 1;
  bool bias = false;
  std::string table = "tokens";
  void fields(Fields& f);
};

// Parameter: bias [out] (0). The table is the weight [out, in] of the embedding at path `table` below the nearest module around
// this one that has one there.
class TiedLinear final : public Module {
 public:
  using Config = TiedLinearConfig;
  explicit TiedLinear(const TiedLinearConfig& config);

  std::string_view kind() const override { return "tied_linear"; }
  Value config() const override;
  Var forward(const Var& x, const Context& context) override;
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  void reset_parameters(std::uint64_t seed) override;
  void check_placed() const override { table(); }

  const Module& table() const;  // throws ConfigError where there is no embedding of that size

 private:
  TiedLinearConfig config_;
  Parameter* bias_;  // null without a bias
};

// Why a module's weight must stay as it is: "shares its table with 'head'"; "" where it is the module's alone.
std::string why_shared(const Module& module);
// The same as the end of a message: "; 'tokens' shares its table with 'head', which stays as it is"; "" likewise.
std::string shared_hint(const Module& module);

}  // namespace tessera
