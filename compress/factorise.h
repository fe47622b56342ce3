// The pass that replaces convolutions by their Tucker-2 form.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compress/pass.h"
#include "compress/ranks/rank_rules.h"
#include "compress/ranks/rank_select.h"
#include "compress/timing/veto.h"
#include "core/config/fields.h"

namespace tessera {

struct HooiConfig {
  std::int64_t iterations = 100;
  double tolerance = 1e-4;
  void fields(Fields& f);
};

// The `factorise` block of a stage.
struct FactoriseConfig {
  Value layers;  // a selector, or a list of selectors (core/nn/selector.h)
  std::string format = "tucker2";
  RankConfig ranks;  // for all layers; not read when there are rules
  std::vector<RankRule> rank_rules;  // `ranks` as a list; the last rule that matches a layer holds for it
  std::string keep = "faster";
  KeepForConfig keep_for;
  HooiConfig hooi;
  void fields(Fields& f);
};

// Why a module cannot be factored; "" when it can.
std::string why_not_factorise(const Module& module);

// What replacements hold: the decomposed weights, or zeros, for those who ask for shapes and costs alone and cannot wait. Errors
// of zeros are not known, and 0 in the report.
enum class Factors { decomposed, zeros };

// Ranks are chosen in prepare, over all layers of a rule together. Modules that a selector matches and that are no convolutions
// are passed over; convolutions that cannot be factored are reported dense with the reason.
class FactorisePass final : public Pass {
 public:
  explicit FactorisePass(FactoriseConfig config, Factors factors = Factors::decomposed)
      : config_(std::move(config)), factors_(factors) {}

  std::string_view name() const override { return "factorise"; }
  // What prepare would throw, with the key of each problem: a selector that matches no layer or no convolution, rules that do not
  // fit (rank_rules.h), ranks that cannot be had (rank_select.h). All of them; none when the pass is prepared.
  std::vector<BlockProblem> try_prepare(Module& root, const Shape& input);
  void prepare(Module& root, const Shape& input) override;  // throws ConfigError with one line per problem
  bool matches(const std::string& path, const Module& module) const override;
  std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const override;

 private:
  struct Planned {
    RankChoice choice;
    std::string asked;  // as the report says it
  };
  struct Matched;
  struct Group;

  std::optional<Matched> match(Module& root, const Shape& input, std::vector<BlockProblem>& problems) const;
  std::vector<Group> groups(const Matched& matched, std::vector<BlockProblem>& problems) const;
  void choose(const Matched& matched, const Group& group, std::vector<BlockProblem>& problems);

  FactoriseConfig config_;
  Factors factors_;
  std::map<std::string, Planned> plan_;  // by path
};

}  // namespace tessera
