// What the tasks of text share. Their loss is the cross entropy between a network's answers, [samples, tokens, classes], and the
// batch's "targets", i64 [samples, tokens]; negative ones ask nothing. The vocabulary is the first of the classes; a
// network may have more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
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
  void add(const BatchLoss& loss) {
    nats_ += loss.mean * static_cast<double>(loss.weight);
    targets_ += loss.weight;
  }
  void add(double nats, double targets) {
    nats_ += nats;
    targets_ += static_cast<std::int64_t>(targets);
  }
  std::int64_t targets() const noexcept { return targets_; }
  double nats() const noexcept { return nats_; }
  double mean() const { return targets_ > 0 ? nats_ / static_cast<double>(targets_) : 0; }

 private:
  double nats_ = 0;
  std::int64_t targets_ = 0;
};

class TokenTask : public Task {
 public:
  std::string_view throughput_unit() const override { return "tok/s"; }
  std::int64_t units_per_sample(const Dataset& data) const override { return tokens_per_sample(data); }
  std::span<const Table> tables() const override { return {}; }
  Var loss(const Var& output, const Batch& batch, const LossConfig& config) const override {
    return token_loss(output, batch, config);
  }
  std::int64_t loss_weight(const Batch& batch) const override { return count_targets(batch); }
  void check_output(const Shape& output, const Dataset& data) const override { check_token_output(output, data); }
};

// `Counts` is what a task counts; default constructed, it has counted nothing. It has
//   static constexpr const char* kColumns              of the predictions, behind index and origin
//   void add(const Tensor& output, const Batch& batch, const BatchLoss& loss)
//   std::vector<double> values() const                 of the task's metrics
//   std::vector<double> sums() const                   what add_sums(std::span<const double>) of other Counts takes in
//   std::string row() const                            the cells of kColumns, of one sample
//   std::string summary() const, text() const          as TaskDetails have them
//   void fields(Fields& f)
template <class Counts>
class TokenScore final : public SummedScore {
 public:
  void add(const Tensor& output, const Batch& batch, const BatchLoss& loss) override { counts_.add(output, batch, loss); }
  std::vector<double> values() const override { return counts_.values(); }
  std::vector<double> sums() const override { return counts_.sums(); }
  void add_sums(std::span<const double> sums) override { counts_.add_sums(sums); }

 private:
  Counts counts_;
};

template <class Counts>
class TokenDetails final : public TaskDetails {
 public:
  // `task`: its name. Throws ConfigError where probabilities are asked for.
  TokenDetails(std::string_view task, const Subset& split, const DetailOptions& options)
      : task_(task), split_(split), predicts_(options.predictions) {
    TESSERA_CHECK(!options.probabilities, ConfigError, task, ": a sample has many answers; --probabilities is for one");
    if (predicts_) predictions_ = str("index,origin,", Counts::kColumns, '\n');
  }

  void add(const Tensor& output, const Batch& batch, const BatchLoss& loss) override {
    counts_.add(output, batch, loss);
    for (std::int64_t i = 0; predicts_ && i < batch.samples(); ++i) {
      const Tensor answers = output.slice(0, i, i + 1);
      const Batch sample = batch.slice(i, i + 1);
      Counts own;
      own.add(answers, sample, {token_loss(Var(answers), sample).value().item(), count_targets(sample)});
      const std::int64_t index = split_.indices[at_++];
      predictions_ += str(index, ',', csv_field(split_.dataset->origin(index)), ',', own.row(), '\n');
    }
  }
  std::vector<double> values() const override { return counts_.values(); }
  std::string summary() const override { return counts_.summary(); }
  std::string text() const override { return counts_.text(); }
  Value keys() const override { return write(counts_); }
  std::string predictions() const override { return predictions_; }
  std::string csv(std::string_view table) const override { throw InternalError(str(task_, ": no table '", table, "'")); }

 private:
  std::string task_;
  Subset split_;
  bool predicts_;
  Counts counts_;
  std::string predictions_;
  std::size_t at_ = 0;  // in the split's order
};

}  // namespace tessera
