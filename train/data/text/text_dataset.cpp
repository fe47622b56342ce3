#include "train/data/text/text_dataset.h"

#include <algorithm>
#include <utility>

#include "core/support/error.h"
#include "core/support/hash.h"

namespace tessera {
namespace {

// Keys of description().
constexpr const char* kText = "text";
constexpr const char* kTask = "task";
constexpr const char* kTokenizer = "tokenizer";
constexpr const char* kFingerprint = "fingerprint";

}  // namespace

// Ignores keys of other versions, as every reader of a manifest does.
TextDescription text_description(const Value& dataset_description) {
  const Value& text = dataset_description.at(kText);
  return {text.at(kTask).as_string(), text.at(kTokenizer), text.at(kFingerprint).as_string()};
}

TextDataset::TextDataset(std::shared_ptr<const TokenStore> store, std::shared_ptr<const Tokenizer> tokenizer,
                         std::vector<std::string> files, const Split& split, const Options& options)
    : store_(std::move(store)),
      tokenizer_(std::move(tokenizer)),
      files_(std::move(files)),
      split_(split),
      options_(options),
      windows_(count_windows()) {
  const Shape window{options_.sequence};
  fields_ = {{"tokens", DType::i64, window, tokenizer_->vocabulary()}, {"targets", DType::i64, window}};
  const bool evaluates = options_.windows == Windows::evaluation;
  if (predicts_next()) {
    fields_.push_back({.name = "bytes", .dtype = DType::i64});
  } else {
    masking_.emplace(*tokenizer_, options_.seed);
    const bool padded = evaluates && (split_.end - split_.begin) % options_.sequence != 0;
    if (padded) fields_.push_back({"key_mask", DType::u8, window});
  }
  TESSERA_CHECK(!evaluates || can_be_scored(), ConfigError, files_.front(),
                files_.size() > 1 ? str(" and ", files_.size() - 1, " more") : "", ": ", split_.name, " asks for none of its ",
                split_.end - split_.begin, " tokens: ",
                predicts_next() ? "all are special or unknown" : "all are special or unknown, or the seed hides none",
                "; needs more text, or a tokenizer that knows it");
}

// Special and unknown tokens have no bytes and are never hidden, so they cannot be scored.
bool TextDataset::can_be_scored() const {
  if (predicts_next()) {
    for (std::int64_t i = split_.begin + 1; i < split_.end; ++i) {
      if (tokenizer_->bytes_of(store_->tokens().at(i)) > 0) return true;
    }
    return false;
  }
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(options_.sequence)), targets(tokens.size());
  for (std::int64_t sample = 0; sample < windows_; ++sample) {
    const std::int64_t real = copy_tokens(begin_of(sample, {}), tokens.data());
    masking_->apply({}, sample, tokens, targets);
    const auto end = targets.begin() + static_cast<std::ptrdiff_t>(real);
    if (std::any_of(targets.begin(), end, [](std::int64_t target) { return target != Masking::kNoTarget; })) return true;
  }
  return false;
}

std::int64_t TextDataset::count_windows() const {
  const std::int64_t tokens = split_.end - split_.begin, length = options_.sequence;
  const bool training = options_.windows == Windows::training;
  const std::int64_t least = training ? 2 * length : predicts_next() ? 2 : 1;
  TESSERA_CHECK(tokens >= least, ConfigError, files_.front(), files_.size() > 1 ? str(" and ", files_.size() - 1, " more") : "",
                ": too short for its split: ", split_.name, " has ", tokens, " of ", store_->tokens().size(), " tokens; needs ",
                least, training ? ", twice the sequence" : "");
  if (training) return tokens / length - 1;
  return (tokens - (predicts_next() ? 1 : 0) + length - 1) / length;
}

std::int64_t TextDataset::begin_of(std::int64_t window, std::optional<std::int64_t> epoch) const {
  const bool shifted = epoch && options_.windows == Windows::training;
  const std::int64_t offset =
      shifted ? random_below(RngStream(options_.seed, "data", "window"), static_cast<std::uint64_t>(*epoch), 0, options_.sequence)
              : 0;
  return split_.begin + offset + window * options_.sequence;
}

// Returns how many of the tokens belong to the split. The others are padding.
std::int64_t TextDataset::copy_tokens(std::int64_t begin, std::int64_t* to) const {
  const std::int64_t real = std::min(options_.sequence, split_.end - begin);
  for (std::int64_t i = 0; i < real; ++i) to[i] = store_->tokens().at(begin + i);
  std::fill(to + real, to + options_.sequence, 0);
  return real;
}

void TextDataset::write_next(std::int64_t begin, std::int64_t real, std::int64_t* targets, std::int64_t& bytes) const {
  const std::int64_t scored = std::min(real, split_.end - begin - 1);
  bytes = 0;
  for (std::int64_t i = 0; i < scored; ++i) {
    const TokenId target = store_->tokens().at(begin + i + 1);
    targets[i] = target;
    bytes += tokenizer_->bytes_of(target);
  }
  std::fill(targets + scored, targets + options_.sequence, Masking::kNoTarget);
}

void TextDataset::assemble(std::span<const std::int64_t> samples, std::optional<std::int64_t> epoch, const Batch& out) const {
  const std::int64_t length = options_.sequence;
  std::int64_t* tokens = out.at("tokens").data<std::int64_t>();
  std::int64_t* targets = out.at("targets").data<std::int64_t>();
  std::int64_t* bytes = predicts_next() ? out.at("bytes").data<std::int64_t>() : nullptr;
  std::uint8_t* key_mask = fields_.back().name == "key_mask" ? out.at("key_mask").data<std::uint8_t>() : nullptr;
  for (const std::int64_t sample : samples) {
    const std::int64_t begin = begin_of(sample, epoch);
    const std::int64_t real = copy_tokens(begin, tokens);
    const auto window = static_cast<std::size_t>(length);
    if (predicts_next()) {
      write_next(begin, real, targets, *bytes++);
    } else {
      masking_->apply(epoch, sample, {tokens, window}, {targets, window});
      std::fill(tokens + real, tokens + length, 0);
      std::fill(targets + real, targets + length, Masking::kNoTarget);
    }
    if (key_mask) {
      std::fill(key_mask, key_mask + real, 1);
      std::fill(key_mask + real, key_mask + length, 0);
      key_mask += length;
    }
    tokens += length;
    targets += length;
  }
}

std::string TextDataset::fingerprint() const {
  return xxh3_128(str("text, 2: ", store_->tokens().digest(), ' ', tokenizer_->fingerprint(), ' ', name_of(options_.task), ' ',
                      options_.sequence, ' ', split_.begin, ' ', split_.end));
}

Value TextDataset::description() const {
  Value text = Value::map();
  text.set(kTask, std::string(name_of(options_.task)));
  text.set(kTokenizer, tokenizer_->config());
  text.set(kFingerprint, tokenizer_->fingerprint());
  Value description = Value::map();
  description.set(kText, text);
  return description;
}

std::string TextDataset::origin(std::int64_t index) const {
  const std::int64_t token = begin_of(index, {});
  const std::vector<TokenFile::Text>& texts = store_->tokens().texts();
  const auto after = std::ranges::upper_bound(texts, token, {}, &TokenFile::Text::first);
  const auto text = static_cast<std::size_t>(after - texts.begin()) - 1;
  return str(files_[text], ", token ", token - texts[text].first);
}

}  // namespace tessera
