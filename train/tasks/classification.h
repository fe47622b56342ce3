// Classification: one of several classes for each sample, whose number is the batch's "label".
#pragma once

#include "train/data/image_config.h"
#include "train/tasks/task.h"

namespace tessera {

class Classification final : public Task {
 public:
  static constexpr std::string_view kName = ImageConfig::kTask;

  std::string_view name() const override { return kName; }
  std::span<const Metric> metrics() const override;  // accuracy
  std::string_view throughput_unit() const override { return "img/s"; }
  std::int64_t units_per_sample(const Dataset&) const override { return 1; }
  std::span<const Table> tables() const override;  // confusion
  // Softmax cross-entropy over output [n, classes].
  Var loss(const Var& output, const Batch& batch, const LossConfig& config) const override;
  void check_output(const Shape& output, const Dataset& data) const override;
  std::unique_ptr<SummedScore> score() const override;
  std::unique_ptr<TaskDetails> details(const Subset& split, const DetailOptions& options) const override;
  // Which of the classes each image or array is (train/data/new_images.h).
  std::unique_ptr<Prediction> prediction(const Value& description, const Shape& input, const Shape& output) const override;
};

// What the network said of one batch: logits f32 [n, classes] and labels i64 [n] on the host, and the class predicted for each:
// that of the greatest logit, of equal ones the first. A NaN counts as greater than every number, except that one of the true
// class counts as less than all, so that no sample is right by a NaN.
struct ClassAnswers {
  Tensor logits;
  Tensor labels;
  std::vector<std::int64_t> predicted;

  ClassAnswers(const Tensor& output, const Batch& batch);
  std::int64_t correct() const;
};

}  // namespace tessera
