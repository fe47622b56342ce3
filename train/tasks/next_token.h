// Language modelling: at each position of a text, the token that comes next ("targets"). Metrics: nats per token, which decides;
// bits per byte, the nats of all targets over ln 2 and the bytes of text that they stand for ("bytes"), which does not depend on
// the tokenizer; perplexity, exp(nats per token).
#pragma once

#include "train/data/text/text_task.h"
#include "train/tasks/token_task.h"

namespace tessera {

class NextToken final : public TokenTask {
 public:
  static constexpr std::string_view kName = name_of(TextTask::next_token);

  std::string_view name() const override { return kName; }
  std::span<const Metric> metrics() const override;
  void check_network(Module& network) const override;  // no position may see those after it
  std::unique_ptr<SummedScore> score() const override;
  std::unique_ptr<TaskDetails> details(const Subset& split, const DetailOptions& options) const override;
  // Which token follows each text. Only the end of a text is read if it is longer than training sequences.
  std::unique_ptr<Prediction> prediction(const Value& description, const Shape& input, const Shape& output) const override;
};

}  // namespace tessera
