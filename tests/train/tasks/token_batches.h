// Batches of tokens and answers to them, for tests of the tasks of text.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "train/tasks/task.h"

namespace tessera {

// As an evaluation does.
inline void judge(const Task& task, TaskScore& score, const Tensor& output, const Batch& batch) {
  score.add(output, batch, task.batch_loss(Var(output), batch));
}

// Scores [samples, tokens, classes] that differ everywhere.
inline Tensor random_scores(std::int64_t samples, std::int64_t tokens, std::int64_t classes, std::uint64_t seed) {
  Tensor scores = Tensor::empty({samples, tokens, classes});
  fill_normal(scores, RngStream(seed, "test", "scores"), 0, 2);
  return scores;
}

// -log softmax(scores)[target] of row `row`, in double.
inline double nats_of(const Tensor& scores, std::int64_t row, std::int64_t target) {
  const std::int64_t classes = scores.dim(2);
  const float* x = scores.data<float>() + row * classes;
  double total = 0;
  for (std::int64_t k = 0; k < classes; ++k) total += std::exp(static_cast<double>(x[k]));
  return std::log(total) - static_cast<double>(x[target]);
}

}  // namespace tessera
