// A GPT whose MLPs are compressed, beside ours dense: a training step, and one token behind another.
#pragma once

#include <cstdint>
#include <string>

#include "bench/train_workload.h"
#include "core/config/value.h"
#include "layers/models/gpt.h"

namespace tessera::bench {

// The forms of `blocks.*.mlp.*`: "svd": two factors with a quarter of the multiply-adds; "tile": a quarter of the weights, in
// columns of tiles of 64 outputs.
struct CompressedRun {
  std::string form;
  std::int64_t rounds = 10;
};

// Prints and gives the line: format, model, shape, batch, precision, phase ("training" or "decoding"), rounds; factored and
// rival, as {name, ms}; ratio (rival / factored), target, agreement (the difference of the first losses, or of scores, from the
// dense network that computes the same, of the largest), decisions. Throws ConfigError on an unknown form, NumericError where the
// two compute different things.
Value measure_compressed_step(const WorkloadConfig& config, const CompressedRun& run);
Value measure_compressed_decoding(const std::string& model, const models::Gpt& network, const CompressedRun& run);

}  // namespace tessera::bench
