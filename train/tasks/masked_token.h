// Masked language modelling as BERT has it (Devlin et al. 2019, section 3.1): which token each hidden one was ("targets").
// Metrics: nats per hidden token, which decides; the share of them whose likeliest token is the true one.
#pragma once

#include "train/data/text/text_task.h"
#include "train/tasks/token_task.h"

namespace tessera {

class MaskedToken final : public TokenTask {
 public:
  static constexpr std::string_view kName = name_of(TextTask::masked_token);

  std::string_view name() const override { return kName; }
  bool targets_vary() const override { return true; }
  std::span<const Metric> metrics() const override;
  std::unique_ptr<SummedScore> score() const override;
  std::unique_ptr<TaskDetails> details(const Subset& split, const DetailOptions& options) const override;
};

}  // namespace tessera
