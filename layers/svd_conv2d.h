// A 1x1 convolution whose weight is the product of two factors (layers/svd_factors.h): two 1x1 convolutions with nothing in
// between; the first has stride and padding. x [n, h, w, in] -> y [n, oh, ow, out], oh = (h + 2 padding - 1) / stride +
// 1.
#pragma once

#include <memory>

#include "core/config/fields.h"
#include "layers/factored_conv2d.h"
#include "layers/svd_factors.h"

namespace tessera {

struct SvdConv2dConfig {
  Conv2dConfig conv{.kernel = {1, 1}};  // of one group
  std::int64_t rank = 1;
  bool batch_norm = false;  // layers/factored_conv2d.h
  void fields(Fields& f);
};

// Parameters: in_factor [rank, 1, 1, in], out_factor [out, 1, 1, rank], bias [out].
class SvdConv2d final : public FactoredConv2d {
 public:
  using Config = SvdConv2dConfig;
  explicit SvdConv2d(const SvdConv2dConfig& config);  // throws ConfigError on an invalid kernel or rank

  std::string_view kind() const override { return "svd_conv2d"; }
  Value config() const override;
  Ranks ranks() const override { return {{"rank", config_.rank}}; }

 private:
  Var composed(std::span<const Var> filters) const override;
  std::unique_ptr<FactoredConv2d> with(const Conv2dConfig& conv) const override;

  SvdConv2dConfig config_;
};

}  // namespace tessera
