// The pass that replaces dense layers by their factored form.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compress/input_moments.h"
#include "compress/low_rank.h"
#include "compress/pass.h"

namespace tessera {

// The `factorise` block of a stage.
struct FactoriseConfig : LowRankConfig {
  std::optional<std::string> from;  // the stage whose admm block stands for the inherited keys
  // "full" or "randomised", of formats that are a singular value decomposition; refused for others.
  std::string singular_vectors = "full";
  // Weighted by second moments of the layers' inputs (input_moments.h); refused for forms whose factors cannot undo the
  // weighting.
  bool weighted = false;
  std::int64_t recalibrate = 0;  // training batches
  void fields(Fields& f);

  // Keys that the form does not take, each with the reason.
  std::vector<std::pair<std::string, std::string>> form_problems() const;
};

// What replacements hold: the decomposed weights, or zeros for callers that need shapes and costs alone, and quickly. With zeros
// the errors are not known, and 0 in the report.
enum class Values { decomposed, zeros };

// Ranks are chosen in prepare, over all layers of a rule together. Matched modules of a kind that the format does not hold are
// passed over. So are tables, unless a selector is their whole path: `*` means a network's products, not its look-ups. Layers
// whose weight the format cannot hold are reported dense with the reason. With `settled`, those ranks are taken, and layers
// without any stay dense.
class FactorisePass : public Pass {
 public:
  explicit FactorisePass(FactoriseConfig config, Values values = Values::decomposed,
                         std::optional<std::vector<LayerRanks>> settled = {});

  std::string_view name() const override { return "factorise"; }
  std::string_view done() const override { return "factored"; }
  // Problems: a selector that matches no layer, or none of the format's kinds; rules that do not fit (rank_rules.h); ranks that
  // cannot be had (rank_select.h).
  std::vector<BlockProblem> try_prepare(std::unique_ptr<Module>& root, const Shape& input, const PassMeans& means = {}) override;
  bool matches(const std::string& path, const Module& module) const override;
  std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const override;
  std::vector<std::string> data_keys() const override;
  std::int64_t recalibration() const override { return config_.recalibrate; }
  RuleComparison compare_rules() const override { return comparison_; }
  void complete(PassReport& report) const override { report.latency = latency_; }

 private:
  struct Planned {
    DenseLayer layer;
    RankChoice choice;
    std::string asked;  // as the report says it
  };
  static constexpr std::int64_t kMomentBatches = 32;  // training batches that inputs are weighted by
  struct Matched;
  struct Group;

  std::optional<Matched> match(Module& root, const Shape& input, std::vector<BlockProblem>& problems) const;
  std::vector<Group> groups(const Matched& matched, std::vector<BlockProblem>& problems) const;
  // The group's layers that have a compressed form, with their spectra unless their ranks are explicit. The cost of all other
  // layers is added to `fixed`. The matched ones among these stay dense, with the reason.
  std::vector<RankLayer> held(const Matched& matched, const Group& group, FixedCost& fixed, std::vector<BlockProblem>& problems);
  struct Model;  // to be prepared for
  // held(), with their ranks in the plan; none where they cannot be asked for.
  std::vector<RankLayer> choose(const Model& model, const Matched& matched, const Group& group,
                                std::vector<BlockProblem>& problems);
  std::vector<RankChoice> choose_ranks(const Model& model, const RankConfig& ranks, std::span<const RankLayer> layers,
                                       const Matched& matched, FixedCost fixed);
  // Returns what `decompose` returns. Where there is no memory for it, the error names the layer, and the key that needs less.
  template <class Decompose>
  auto within_memory(const std::string& path, const Decompose& decompose) const;
  const Format& form_of(const DenseLayer& layer) const { return format_.for_layer(*layer.module); }
  Tensor weighted_weight(const DenseLayer& layer) const;  // as it is decomposed
  Factors project(const DenseLayer& layer, const Ranks& ranks) const;

  void compare(std::span<const RankLayer> layers, std::int64_t multiple_of);  // with their spectra
  void take_settled(const Matched& matched, std::vector<BlockProblem>& problems);

  FactoriseConfig config_;
  std::optional<std::vector<LayerRanks>> settled_;
  std::shared_ptr<const Format> form_;
  const Format& format_;
  Values values_;
  std::map<std::string, Planned> plan_;  // by path
  RuleComparison comparison_;
  std::optional<LatencyOutcome> latency_;
  std::map<std::string, InputWeights> input_weights_;  // by path
};

}  // namespace tessera
