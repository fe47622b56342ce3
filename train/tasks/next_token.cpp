#include "train/tasks/next_token.h"

#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

namespace tessera {
namespace {

std::int64_t bytes_of(const Batch& batch) {
  const auto bytes = batch.at("bytes").to(Device::cpu()).to_vector<std::int64_t>();
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

// Of a whole split.
struct NextTokenCounts {
  static constexpr const char* kColumns = "tokens,bytes,token_loss";

  TokenSum sum;
  std::int64_t bytes = 0;

  void add(const Tensor&, const Batch& batch, const BatchLoss& loss) {
    sum.add(loss);
    bytes += bytes_of(batch);
  }
  double bits_per_byte() const { return bytes > 0 ? sum.nats() / std::numbers::ln2 / static_cast<double>(bytes) : 0; }
  double perplexity() const { return sum.targets() > 0 ? std::exp(sum.mean()) : 0; }
  std::vector<double> values() const { return {sum.mean(), bits_per_byte(), perplexity()}; }
  std::string row() const { return str(sum.targets(), ',', bytes, ',', formatted("%.6g", sum.mean())); }
  std::string summary() const {
    return str("bits/byte ", formatted("%.4f", bits_per_byte()), "  perplexity ", formatted("%.6g", perplexity()));
  }
  std::string text() const { return str(sum.targets(), " tokens, ", bytes, " bytes of text\n"); }

  void fields(Fields& f) {
    f.add_computed("tokens", sum.targets(), {.help = "that were to be told"});
    f.add_computed("bytes", bytes, {.help = "of text that they stand for"});
    f.add_computed("token_loss", sum.mean(), {.help = "nats per token"});
    f.add_computed("bits_per_byte", bits_per_byte(), {.help = "nats of all tokens / ln 2 / bytes"});
    f.add_computed("perplexity", perplexity(), {.help = "exp(token_loss)"});
  }
};

}  // namespace

std::span<const Metric> NextToken::metrics() const {
  static constexpr std::array<Metric, 3> metrics{
      Metric{.key = "token_loss", .column = "token_loss", .heading = "nats/token", .more_is_better = false},
      Metric{.key = "bits_per_byte", .column = "bits_per_byte", .heading = "bits/byte", .more_is_better = false},
      Metric{.key = "perplexity", .column = "perplexity", .heading = "perplexity", .more_is_better = false}};
  return metrics;
}

std::unique_ptr<TaskScore> NextToken::score() const { return std::make_unique<TokenScore<NextTokenCounts>>(); }

std::unique_ptr<TaskDetails> NextToken::details(const Subset& split, const DetailOptions& options) const {
  return std::make_unique<TokenDetails<NextTokenCounts>>(kName, split, options);
}

}  // namespace tessera
