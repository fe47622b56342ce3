// What the tasks of text share: cross entropy between a network's answers, [samples, tokens, classes], and the batch's "targets",
// i64 [samples, tokens], of which negative ones ask nothing. The vocabulary is the first of the classes; a network may have more.
#pragma once

#include <cstdint>

#include "train/tasks/task.h"

namespace tessera {

// The mean over targets; 0 without any.
Var token_loss(const Var& output, const Batch& batch, const LossConfig& config = {});

std::int64_t count_targets(const Batch& batch);

// Throws ConfigError naming network and data set where `output`, for one sample, is not [1, tokens, classes] with a class for
// each token of the vocabulary.
void check_token_output(const Shape& output, const Dataset& data);

std::int64_t tokens_per_sample(const Dataset& data);

// Nats over a whole split: each batch's mean times its targets, summed in double.
class TokenSum {
 public:
  double add(const Tensor& output, const Batch& batch);  // returns the batch's mean
  std::int64_t targets() const noexcept { return targets_; }
  double nats() const noexcept { return nats_; }
  double mean() const { return targets_ > 0 ? nats_ / static_cast<double>(targets_) : 0; }

 private:
  double nats_ = 0;
  std::int64_t targets_ = 0;
};

}  // namespace tessera
