#include "compress/pass.h"

#include "core/support/error.h"

namespace tessera {

void Pass::prepare(Module& root, const Shape& input, const TrainingBatches* batches) {
  std::string lines;
  for (const BlockProblem& problem : try_prepare(root, input, batches)) lines += str(lines.empty() ? "" : "\n", problem.message);
  if (!lines.empty()) throw ConfigError(lines);
}

}  // namespace tessera
