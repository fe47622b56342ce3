// The pass that replaces convolutions by their Tucker-2 form.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compress/pass.h"
#include "compress/rank_select.h"
#include "core/config/fields.h"

namespace tessera {

struct HooiConfig {
  std::int64_t iterations = 100;
  double tolerance = 1e-4;
  void fields(Fields& f);
};

// The `factorise` block of a stage.
struct FactoriseConfig {
  Value layers;  // a selector, or a list of selectors (compress/selector.h)
  std::string format = "tucker2";
  RankConfig ranks;
  std::string keep = "always";
  HooiConfig hooi;
  void fields(Fields& f);

  std::vector<std::string> patterns() const;
};

// Why a module cannot be factored; "" when it can.
std::string why_not_factorise(const Module& module);

// Ranks are chosen in prepare, over all matched layers together. Modules that a selector matches and that are no convolutions
// are passed over; convolutions that cannot be factored are reported dense with the reason.
class FactorisePass final : public Pass {
 public:
  explicit FactorisePass(FactoriseConfig config) : config_(std::move(config)) {}

  std::string_view name() const override { return "factorise"; }
  // Throws ConfigError when a selector matches no layer, all match no convolution, or the ranks cannot be had (rank_select.h).
  void prepare(Module& root, const Shape& input) override;
  bool matches(const std::string& path, const Module& module) const override;
  std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const override;

 private:
  FactoriseConfig config_;
  std::map<std::string, RankChoice> plan_;  // by path
};

}  // namespace tessera
