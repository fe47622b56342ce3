#include "train/report/inference_choices.h"

#include <memory>

#include "compress/timing/latency.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "layers/fold.h"
#include "train/run/decisions_file.h"
#include "train/run/saved_use.h"

namespace tessera {

void add_inference_choices(NetworkUse& use, const Module& model, const Shape& input, std::span<const std::int64_t> batches) {
  const std::unique_ptr<Module> network = for_inference(model);
  const WorkOptions inference{.phase = Phase::inference, .compute = compute_dtype(use.precision, Device::cpu())};
  const DecisionScope fastest({.measure = true, .known = decisions_of(use)});
  const ConstantWeights constant;
  for (const std::int64_t batch : batches) {
    Shape many = input;
    many.set(0, batch);
    TimedWork(*network, many, inference).run(*network);
  }
  use.decisions = to_value(fastest.taken());
}

}  // namespace tessera
