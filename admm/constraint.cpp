#include "admm/constraint.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/finite.h"
#include "core/support/error.h"

namespace tessera {
namespace {

class LowRank final : public Constraint {
 public:
  LowRank(const LowRankConfig& config, const Ranks& ranks)
      : form_(config.form()), ranks_(ranks), options_(config.decomposition.value_or(ProjectOptions())) {}

  Tensor project(const Tensor& weight) const override {
    return form_->compose(form_->project(weight, ranks_, options_), weight.shape()).to(weight.device());
  }

 private:
  std::shared_ptr<const Format> form_;
  Ranks ranks_;
  ProjectOptions options_;
};

class TopK final : public Constraint {
 public:
  explicit TopK(std::int64_t kept) : kept_(kept) {}

  Tensor project(const Tensor& weight) const override {
    TESSERA_CHECK(all_finite(weight), NumericError, "the weight contains NaN or Inf");
    const Tensor host = weight.to(Device::cpu());
    const Tensor projected = host.dtype() == DType::f64 ? largest<double>(host) : largest<float>(host.to(DType::f32));
    return projected.to(weight.dtype()).to(weight.device());
  }

 private:
  template <class T>
  Tensor largest(const Tensor& weight) const {
    const std::int64_t kept = std::min(kept_, weight.numel());
    const T* const from = weight.data<T>();
    std::vector<std::int64_t> order(static_cast<std::size_t>(weight.numel()));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    const auto before = [from](std::int64_t a, std::int64_t b) {
      const T left = std::abs(from[a]), right = std::abs(from[b]);
      return left != right ? left > right : a < b;
    };
    std::ranges::nth_element(order, order.begin() + kept, before);
    const Tensor to = Tensor::zeros(weight.shape(), weight.dtype());
    for (std::int64_t i = 0; i < kept; ++i) {
      const std::int64_t at = order[static_cast<std::size_t>(i)];
      to.data<T>()[at] = from[at];
    }
    return to;
  }

  std::int64_t kept_;
};

}  // namespace

std::unique_ptr<const Constraint> top_k_constraint(std::int64_t kept) {
  TESSERA_CHECK(kept >= 0, ConfigError, "top_k_constraint: kept is ", kept, "; it cannot be negative");
  return std::make_unique<TopK>(kept);
}

std::unique_ptr<const Constraint> low_rank_constraint(const LowRankConfig& config, const Ranks& ranks) {
  return std::make_unique<LowRank>(config, ranks);
}

std::vector<ConstrainedLayer> low_rank_layers(const LowRankConfig& config, const std::vector<LayerRanks>& layers) {
  std::vector<ConstrainedLayer> constrained;
  for (const LayerRanks& layer : layers) constrained.push_back({layer.path, low_rank_constraint(config, layer.ranks)});
  return constrained;
}

}  // namespace tessera
