#include "train/tasks/next_token.h"

#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

std::int64_t bytes_of(const Batch& batch) {
  const auto bytes = batch.at("bytes").to(Device::cpu()).to_vector<std::int64_t>();
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

// Of a whole split.
struct NextTokenCounts {
  TokenSum sum;
  std::int64_t bytes = 0;

  void add(const Tensor& output, const Batch& batch) {
    sum.add(output, batch);
    bytes += bytes_of(batch);
  }
  double bits_per_byte() const { return bytes > 0 ? sum.nats() / std::numbers::ln2 / static_cast<double>(bytes) : 0; }
  double perplexity() const { return sum.targets() > 0 ? std::exp(sum.mean()) : 0; }
  std::vector<double> values() const { return {sum.mean(), bits_per_byte(), perplexity()}; }

  void fields(Fields& f) {
    f.add_computed("tokens", sum.targets(), {.help = "that were to be told"});
    f.add_computed("bytes", bytes, {.help = "of text that they stand for"});
    f.add_computed("token_loss", sum.mean(), {.help = "nats per token"});
    f.add_computed("bits_per_byte", bits_per_byte(), {.help = "nats of all tokens / ln 2 / bytes"});
    f.add_computed("perplexity", perplexity(), {.help = "exp(token_loss)"});
  }
};

class NextTokenScore final : public TaskScore {
 public:
  void add(const Tensor& output, const Batch& batch) override { counts_.add(output, batch); }
  std::vector<double> values() const override { return counts_.values(); }

 private:
  NextTokenCounts counts_;
};

class NextTokenDetails final : public TaskDetails {
 public:
  NextTokenDetails(const Subset& split, const DetailOptions& options) : split_(split), options_(options) {
    TESSERA_CHECK(!options.probabilities, ConfigError, "next-token: a sample has many answers; --probabilities is for one");
    if (options.predictions) predictions_ = "index,origin,tokens,bytes,token_loss\n";
  }

  void add(const Tensor& output, const Batch& batch) override {
    counts_.add(output, batch);
    for (std::int64_t i = 0; options_.predictions && i < batch.samples(); ++i) {
      write_row(output.slice(0, i, i + 1), batch.slice(i, i + 1));
    }
  }
  std::vector<double> values() const override { return counts_.values(); }
  std::string summary() const override {
    return str("bits/byte ", formatted("%.4f", counts_.bits_per_byte()), "  perplexity ",
               formatted("%.6g", counts_.perplexity()));
  }
  std::string text() const override { return str(counts_.sum.targets(), " tokens, ", counts_.bytes, " bytes of text\n"); }
  Value keys() const override { return write(counts_); }
  std::string predictions() const override { return predictions_; }
  std::string csv(std::string_view table) const override { throw InternalError(str("next-token: no table '", table, "'")); }

 private:
  void write_row(const Tensor& output, const Batch& batch) {
    NextTokenCounts own;
    own.add(output, batch);
    const std::int64_t index = split_.indices[at_++];
    predictions_ += str(index, ',', csv_field(split_.dataset->origin(index)), ',', own.sum.targets(), ',', own.bytes, ',',
                        formatted("%.6g", own.sum.mean()), '\n');
  }

  Subset split_;
  DetailOptions options_;
  NextTokenCounts counts_;
  std::string predictions_;
  std::size_t at_ = 0;  // in the split's order
};

}  // namespace

std::span<const Metric> NextToken::metrics() const {
  static constexpr std::array<Metric, 3> metrics{
      Metric{.key = "token_loss", .column = "token_loss", .heading = "nats/token", .more_is_better = false},
      Metric{.key = "bits_per_byte", .column = "bits_per_byte", .heading = "bits/byte", .more_is_better = false},
      Metric{.key = "perplexity", .column = "perplexity", .heading = "perplexity", .more_is_better = false}};
  return metrics;
}

std::unique_ptr<TaskScore> NextToken::score() const { return std::make_unique<NextTokenScore>(); }

std::unique_ptr<TaskDetails> NextToken::details(const Subset& split, const DetailOptions& options) const {
  return std::make_unique<NextTokenDetails>(split, options);
}

}  // namespace tessera
