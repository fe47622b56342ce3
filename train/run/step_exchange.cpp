#include "train/run/step_exchange.h"

#include <cstring>
#include <ranges>

#include "core/comm/buckets.h"

namespace tessera {

void sum_gradients(Communicator& ranks, std::span<const NamedParameter> parameters) {
  std::vector<Tensor> gradients;
  for (const NamedParameter& entry : parameters | std::views::reverse) {
    if (entry.parameter->grad().defined()) gradients.push_back(entry.parameter->grad());
  }
  all_reduce(ranks, gradients);
}

void average_statistics(Communicator& ranks, std::span<const NamedBuffer> buffers) {
  std::vector<Tensor> statistics;
  for (const NamedBuffer& entry : buffers) {
    if (is_floating(entry.buffer->value.dtype())) statistics.push_back(entry.buffer->value);
  }
  all_reduce(ranks, statistics);
  const auto share = static_cast<float>(ranks.size());
  for (const Tensor& tensor : statistics) {
    float* const values = tensor.data<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) values[i] /= share;
  }
}

std::vector<Tensor> all_losses(Communicator& ranks, std::span<const Tensor> mine) {
  std::string bytes;
  for (const Tensor& loss : mine) bytes.append(static_cast<const char*>(loss.raw()), loss.bytes());
  std::vector<Tensor> losses;
  for (const std::string& of_rank : ranks.all_gather(bytes)) {
    for (std::size_t at = 0; at < of_rank.size(); at += sizeof(double)) {
      double loss = 0;
      std::memcpy(&loss, of_rank.data() + at, sizeof loss);
      losses.push_back(Tensor::scalar(loss, DType::f64));
    }
  }
  return losses;
}

}  // namespace tessera
