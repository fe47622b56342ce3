#include "train/run/step_exchange.h"

#include <cstring>
#include <utility>

#include "core/comm/buckets.h"
#include "core/ops/arithmetic.h"
#include "core/support/profile.h"

namespace tessera {

GradientExchange::GradientExchange(Communicator& ranks, std::span<const NamedParameter> parameters,
                                   std::unique_ptr<PowerSgd> power)
    : parameters_(parameters), power_(std::move(power)), sent_(parameters.size()), sums_(ranks) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (takes(i)) index_[parameters[i].parameter->var().node().get()] = i;
  }
}

LeafDone GradientExchange::send() {
  return [this](const Node& leaf) {
    const auto found = index_.find(&leaf);
    if (found == index_.end()) return;
    sums_.add(leaf.grad, parameters_[found->second].path);
    sent_[found->second] = true;
  };
}

void GradientExchange::finish() {
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    const Tensor& gradient = parameters_[i].parameter->grad();
    if (gradient.defined() && takes(i) && !sent_[i]) sums_.add(gradient, parameters_[i].path);
  }
  sums_.finish();
  charge_profile(ProfilePart::exchange, "gradients");
  if (power_) power_->sum();
  if (power_) charge_profile(ProfilePart::exchange, "power_sgd");
  sent_.assign(sent_.size(), false);
}

void average_statistics(Communicator& ranks, std::span<const NamedBuffer> buffers) {
  std::vector<Tensor> statistics;
  for (const NamedBuffer& entry : buffers) {
    if (is_floating(entry.buffer->value.dtype())) statistics.push_back(entry.buffer->value);
  }
  all_reduce(ranks, statistics);
  const NoGrad no_grad;
  for (const Tensor& tensor : statistics) tensor.copy_from(mul_scalar(Var(tensor), 1.0 / ranks.size()).value());
}

std::vector<Tensor> all_losses(Communicator& ranks, std::span<const Tensor> mine) {
  std::string bytes;
  for (const Tensor& loss : mine) {
    const double value = loss.item();
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
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
