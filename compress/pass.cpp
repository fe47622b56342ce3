#include "compress/pass.h"

#include "core/support/error.h"

namespace tessera {

void RuleComparison::fields(Fields& f) {
  f.add("layers", layers, {.help = "paths of those that the form can hold"});
  f.add("rules", rules, {.help = "what each would choose"});
}

void Pass::prepare(std::unique_ptr<Module>& root, const Shape& input, const PassMeans& means) {
  std::string lines;
  for (const BlockProblem& problem : try_prepare(root, input, means)) lines += str(lines.empty() ? "" : "\n", problem.message);
  if (!lines.empty()) throw ConfigError(lines);
}

std::unique_ptr<Module> Pass::rewrite_network(Module&, std::vector<LayerReport>&) const { return nullptr; }

}  // namespace tessera
