#include "train/tasks/masked_token.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/embedding.h"

namespace tessera {
namespace {

// Whether the target has the greatest score; of equal scores the first counts. A row with a NaN is never right.
bool is_right(const float* row, std::int64_t classes, std::int64_t target) {
  const bool finite = std::none_of(row, row + classes, [](float score) { return std::isnan(score); });
  return finite && std::max_element(row, row + classes) - row == target;
}

// The number of targets whose likeliest class is the true one. Only the rows of scores at targets are read.
std::int64_t count_right(const Tensor& output, const Batch& batch) {
  const auto targets = batch.at("targets").to(Device::cpu()).to_vector<std::int64_t>();
  std::vector<std::int64_t> rows, hidden;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    rows.push_back(static_cast<std::int64_t>(i));
    hidden.push_back(targets[i]);
  }
  if (rows.empty()) return 0;
  const std::int64_t classes = output.dim(2);
  const Tensor numbers = Tensor::from(rows, {static_cast<std::int64_t>(rows.size())}).to(output.device());
  const Tensor all = output.reshape({static_cast<std::int64_t>(targets.size()), classes}).contiguous();
  const Tensor scores = embedding(numbers, Var(all)).value().to(Device::cpu()).contiguous();
  std::int64_t right = 0;
  const float* row = scores.data<float>();
  for (const std::int64_t target : hidden) {
    right += is_right(row, classes, target);
    row += classes;
  }
  return right;
}

// Counts over a whole split.
struct MaskedTokenCounts {
  static constexpr const char* kColumns = "masked,masked_loss,right";

  TokenSum sum;
  std::int64_t tokens = 0;
  std::int64_t right = 0;

  void add(const Tensor& output, const Batch& batch, const BatchLoss& loss) {
    sum.add(loss);
    tokens += batch.at("targets").numel();
    right += count_right(output, batch);
  }
  std::vector<double> sums() const {
    return {sum.nats(), static_cast<double>(sum.targets()), static_cast<double>(tokens), static_cast<double>(right)};
  }
  void add_sums(std::span<const double> sums) {
    sum.add(sums[0], sums[1]);
    tokens += static_cast<std::int64_t>(sums[2]);
    right += static_cast<std::int64_t>(sums[3]);
  }
  double accuracy() const { return sum.targets() > 0 ? static_cast<double>(right) / static_cast<double>(sum.targets()) : 0; }
  std::vector<double> values() const { return {sum.mean(), accuracy()}; }
  std::string row() const { return str(sum.targets(), ',', formatted("%.6g", sum.mean()), ',', right); }
  std::string summary() const { return str("accuracy ", percent(accuracy())); }
  std::string text() const { return str(sum.targets(), " masked of ", tokens, " tokens, ", right, " told rightly\n"); }

  void fields(Fields& f) {
    f.add_computed("tokens", tokens, {.help = "of the split's windows, padding among them"});
    f.add_computed("masked", sum.targets(), {.help = "tokens that were to be told"});
    f.add_computed("masked_loss", sum.mean(), {.help = "nats per such token"});
    f.add_computed("masked_accuracy", accuracy(), {.help = "share of them that were told rightly"});
  }
};

}  // namespace

std::span<const Metric> MaskedToken::metrics() const {
  static constexpr std::array<Metric, 2> metrics{
      Metric{.key = "masked_loss", .column = "masked_loss", .heading = "nats/masked token", .more_is_better = false},
      Metric{.key = "masked_accuracy",
             .column = "masked_accuracy",
             .heading = "masked accuracy",
             .unit = Metric::Unit::fraction,
             .more_is_better = true}};
  return metrics;
}

std::unique_ptr<SummedScore> MaskedToken::score() const { return std::make_unique<TokenScore<MaskedTokenCounts>>(); }

std::unique_ptr<TaskDetails> MaskedToken::details(const Subset& split, const DetailOptions& options) const {
  return std::make_unique<TokenDetails<MaskedTokenCounts>>(kName, split, options);
}

}  // namespace tessera
