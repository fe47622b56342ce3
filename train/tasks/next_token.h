// Language modelling: at each position of a text, the token that comes next ("targets"). Metrics: nats per token, which decides;
// bits per byte, the nats of all targets over ln 2 and the bytes of text that they stand for ("bytes"), which does not depend on
// the tokenizer; perplexity, exp(nats per token).
#pragma once

#include "train/tasks/token_loss.h"

namespace tessera {

class NextToken final : public Task {
 public:
  static constexpr std::string_view kName = "next-token";

  std::string_view name() const override { return kName; }
  std::span<const Metric> metrics() const override;
  std::string_view throughput_unit() const override { return "tok/s"; }
  std::int64_t units_per_sample(const Dataset& data) const override { return tokens_per_sample(data); }
  std::span<const Table> tables() const override { return {}; }
  Var loss(const Var& output, const Batch& batch, const LossConfig& config) const override {
    return token_loss(output, batch, config);
  }
  std::int64_t loss_weight(const Batch& batch) const override { return count_targets(batch); }
  void check_output(const Shape& output, const Dataset& data) const override { check_token_output(output, data); }
  std::unique_ptr<TaskScore> score() const override;
  std::unique_ptr<TaskDetails> details(const Subset& split, const DetailOptions& options) const override;
};

}  // namespace tessera
