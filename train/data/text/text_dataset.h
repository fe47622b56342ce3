// Windows of a text as samples: `sequence` tokens each, of one contiguous part (a split) of the tokens of some files.
//
// Split of n tokens, T = sequence, a window's targets are its tokens shifted by one (next-token) or its own (masked-token):
// - Training windows: floor(n / T) - 1 of them. In epoch e window w begins at offset(seed, e) + w T, offset below T, so that each
//   epoch cuts the text elsewhere; all are full.
// - Evaluation windows: window w begins at w T, and the last, shorter one is padded with token 0. Every token of the split is a
//   target once, except for the first one with next-token, which has nothing before it. Padding has target -100, and no token
//   attends to it: a token does not see what follows it (next-token), or "key_mask" is 0 there (masked-token).
// Asked for without an epoch, training windows have offset 0.
//
// Fields: "tokens" i64 [T]; "targets" i64 [T]; next-token: "bytes" i64 [], bytes of text that the targets stand for;
// masked-token: "key_mask" u8 [T] where the split has a padded window.
#pragma once

#include <memory>

#include "core/config/value.h"
#include "train/data/dataset.h"
#include "train/data/text/masking.h"
#include "train/data/text/text_task.h"
#include "train/data/text/token_cache.h"
#include "train/data/text/tokenizer.h"

namespace tessera {

// The keys of a manifest under "text": what tokens mean.
struct TextDescription {
  std::string task;
  Value tokenizer;  // its config()
  std::string fingerprint;  // of the tokenizer

  bool predicts_next() const { return task == name_of(TextTask::next_token); }
};
// Throws ConfigError where there is none.
TextDescription text_description(const Value& dataset_description);

class TextDataset final : public Dataset {
 public:
  enum class Windows { training, evaluation };
  struct Split {
    std::string name;  // for messages
    std::int64_t begin = 0, end = 0;  // tokens of the store
  };
  struct Options {
    TextTask task = TextTask::next_token;
    Windows windows = Windows::training;
    std::int64_t sequence = 256;
    std::uint64_t seed = 0;
  };

  // `files` are those of the store. Throws ConfigError where the split has no window: training needs 2 T tokens, evaluation 2, or
  // 1 for masked-token; also on masked-token without a mask token.
  TextDataset(std::shared_ptr<const TokenStore> store, std::shared_ptr<const Tokenizer> tokenizer, std::vector<std::string> files,
              const Split& split, const Options& options);

  std::string_view name() const override { return "text"; }
  std::int64_t size() const override { return windows_; }
  const std::vector<Field>& fields() const override { return fields_; }
  std::size_t bytes() const override { return 0; }  // mapped, not held
  void assemble(std::span<const std::int64_t> samples, std::optional<std::int64_t> epoch, const Batch& out) const override;
  std::string fingerprint() const override;
  Value description() const override;  // {text: TextDescription}
  std::string origin(std::int64_t index) const override;  // "a.txt, token 1234": where an evaluation's window begins
  const Tokenizer& tokenizer() const noexcept { return *tokenizer_; }
  const TokenStore& store() const noexcept { return *store_; }
  std::int64_t tokens() const noexcept { return split_.end - split_.begin; }

 private:
  bool predicts_next() const { return options_.task == TextTask::next_token; }
  std::int64_t begin_of(std::int64_t window, std::optional<std::int64_t> epoch) const;
  std::int64_t count_windows() const;
  bool can_be_scored() const;  // an evaluation finds a token to ask for
  std::int64_t copy_tokens(std::int64_t begin, std::int64_t* to) const;
  void write_next(std::int64_t begin, std::int64_t real, std::int64_t* targets, std::int64_t& bytes) const;

  std::shared_ptr<const TokenStore> store_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> files_;
  Split split_;
  Options options_;
  std::int64_t windows_;
  std::vector<Field> fields_;
  std::optional<Masking> masking_;
};

}  // namespace tessera
