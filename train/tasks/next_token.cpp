#include "train/tasks/next_token.h"

#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "layers/decoding.h"
#include "train/config/utf8.h"
#include "train/data/text/new_text.h"
#include "train/data/text/text_config.h"

namespace tessera {
namespace {

std::int64_t bytes_of(const Batch& batch) {
  const auto bytes = batch.at("bytes").to(Device::cpu()).to_vector<std::int64_t>();
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

// Counts over a whole split.
struct NextTokenCounts {
  static constexpr const char* kColumns = "tokens,bytes,token_loss";

  TokenSum sum;
  std::int64_t bytes = 0;

  void add(const Tensor&, const Batch& batch, const BatchLoss& loss) {
    sum.add(loss);
    bytes += bytes_of(batch);
  }
  std::vector<double> sums() const { return {sum.nats(), static_cast<double>(sum.targets()), static_cast<double>(bytes)}; }
  void add_sums(std::span<const double> sums) {
    sum.add(sums[0], sums[1]);
    bytes += static_cast<std::int64_t>(sums[2]);
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

// A token whose text alone is not valid UTF-8, such as half a letter, is shown by its bytes.
std::string text_or_bytes(const std::string& text) {
  if (find_invalid_utf8(text) == std::string::npos) return text;
  std::string escaped;
  for (const unsigned char byte : text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    escaped += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return escaped;
}

class TokenPrediction final : public Prediction {
 public:
  TokenPrediction(std::shared_ptr<const Tokenizer> tokenizer, std::int64_t longest)
      : tokenizer_(std::move(tokenizer)), longest_(longest) {}

  std::unique_ptr<NewSamples> open(const std::string& file) const override { return open_text(read_text(file), file); }
  std::unique_ptr<NewSamples> open_text(const std::string& text, const std::string& name) const override {
    return new_text(*tokenizer_, text, name, longest_);
  }
  std::int64_t answers() const override { return tokenizer_->vocabulary(); }
  std::string name_of(std::int64_t number) const override {
    const auto id = static_cast<TokenId>(number);
    const std::string text = tokenizer_->decode({&id, 1});
    return text.empty() || tokenizer_->is_special(id) ? str("<token ", number, '>') : text_or_bytes(text);
  }
  std::string shown(const std::string& name) const override { return to_json(name); }  // makes blanks and line breaks visible
  // The scores after the last token. Scores beyond the vocabulary have no meaning and are cut off.
  Tensor scores(const Tensor& output) const override {
    const Tensor last = output.slice(1, output.dim(1) - 1, output.dim(1)).slice(2, 0, answers());
    return last.to(DType::f32).to(Device::cpu()).contiguous().reshape({output.dim(0), answers()});
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::int64_t longest_;
};

}  // namespace

std::span<const Metric> NextToken::metrics() const {
  static constexpr std::array<Metric, 3> metrics{
      Metric{.key = "token_loss", .column = "token_loss", .heading = "nats/token", .more_is_better = false},
      Metric{.key = "bits_per_byte", .column = "bits_per_byte", .heading = "bits/byte", .more_is_better = false},
      Metric{.key = "perplexity", .column = "perplexity", .heading = "perplexity", .more_is_better = false, .pictured = true}};
  return metrics;
}

void NextToken::check_network(Module& network) const {
  const std::string path = attention_that_looks_ahead(network);
  TESSERA_CHECK(path.empty(), ConfigError, "'", path, "' is not causal, so a position sees the next token, which task ", kName,
                " asks for; needs causal attention, as gpt has it, or data.task: ", name_of(TextTask::masked_token));
}

std::unique_ptr<SummedScore> NextToken::score() const { return std::make_unique<TokenScore<NextTokenCounts>>(); }

std::unique_ptr<TaskDetails> NextToken::details(const Subset& split, const DetailOptions& options) const {
  return std::make_unique<TokenDetails<NextTokenCounts>>(kName, split, options);
}

std::unique_ptr<Prediction> NextToken::prediction(const Value& description, const Shape& input, const Shape& output) const {
  auto tokenizer = tokenizer_of(text_description(description));
  TESSERA_CHECK(input.rank() == 2 && output.rank() == 3 && output[2] >= tokenizer->vocabulary(), ConfigError,
                "the network takes ", input, " and gives ", output, "; tokenizer ", tokenizer->name(), " has ",
                tokenizer->vocabulary(), " tokens, so it must be [1, t] and [1, t, ", tokenizer->vocabulary(), "] or wider");
  return std::make_unique<TokenPrediction>(std::move(tokenizer), input[1]);
}

}  // namespace tessera
