#include "train/tasks/token_task.h"

#include <algorithm>

#include "core/ops/cross_entropy.h"
#include "core/ops/view.h"
#include "core/support/error.h"
#include "train/data/text/text_dataset.h"

namespace tessera {

Var token_loss(const Var& output, const Batch& batch, const LossConfig& config) {
  const Tensor& targets = batch.at("targets");
  const Var rows = reshape(output, {targets.numel(), output.value().dim(2)});
  return cross_entropy(rows, targets.reshape({targets.numel()}),
                       {.label_smoothing = config.label_smoothing, .ignore_index = Masking::kNoTarget});
}

std::int64_t count_targets(const Batch& batch) {
  const auto targets = batch.at("targets").to(Device::cpu()).to_vector<std::int64_t>();
  return std::ranges::count_if(targets, [](std::int64_t target) { return target >= 0; });
}

void check_token_output(const Shape& output, const Dataset& data) {
  const std::int64_t tokens = tokens_per_sample(data), vocabulary = data.fields().front().limit;
  TESSERA_CHECK(output.rank() == 3 && output[1] == tokens && output[2] >= vocabulary, ConfigError, "the network gives ", output,
                " for one sample; ", data.name(), " has ", tokens, " tokens of tokenizer ",
                to_json(text_description(data.description()).tokenizer), ", which has ", vocabulary, ", so it must be [1, ",
                tokens, ", ", vocabulary, "] or wider");
}

std::int64_t tokens_per_sample(const Dataset& data) { return data.fields().front().shape.dim(0); }

}  // namespace tessera
