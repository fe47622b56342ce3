#include "train/data/text/text_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "core/support/error.h"
#include "train/data/text/tokenizer_config.h"

namespace tessera {
namespace {

bool is_split(const std::vector<double>& split) {
  const bool shares = std::ranges::all_of(split, [](double share) { return share >= 0 && share <= 100; });
  return split.size() == 3 && shares && split[0] > 0 && std::abs(std::accumulate(split.begin(), split.end(), 0.0) - 100) < 1e-9;
}

}  // namespace

void TextDataConfig::fields(Fields& f) {
  f.add("files", files,
        {.help = "text files, one after the other, relative to root, or without it to the experiment file",
         .example = "[\"${TESSERA_DATA}/tinyshakespeare/input.txt\"]",
         .observable = "bytes",
         .required = true});
  f.add("split", split,
        {.help = "per cent of the tokens, in their order: train, val and test; the last two may be 0",
         .range = between(0, 100),
         .example = "[80, 10, 10]",
         .observable = "plan"});
  f.add("tokenizer", tokenizer,
        {.help = "bytes, {bpe: {vocab: F, merges: F}}, {wordpiece: {vocab: F, lower_case: true}} or {sentencepiece: F}",
         .example = "{wordpiece: {vocab: vocab.txt}}",
         .observable = "plan",
         .check = check_tokenizer});
  f.add("sequence", sequence,
        {.help = "tokens of a sample", .range = between(1, 1 << 20), .example = "128", .observable = "plan"});
  f.add("task", task,
        {.help = "what is learnt: next-token, or masked-token as BERT does",
         .choices = {kTextTasks.begin(), kTextTasks.end()},
         .observable = "bytes"});
  f.require(!files.empty() && std::ranges::none_of(files, &std::string::empty), "files", "needs the names of text files");
  f.require(is_split(split), "split", "needs three numbers of 0 to 100 that sum to 100, the first above 0");
}

void TextDataConfig::for_each_file(Value& data, const ChangeFile& change) {
  if (Value* const files = data.find("files"); files && files->is_list()) {
    for (Value& file : files->as_list()) change_file_name(file, change);
  }
  if (Value* const tokenizer = data.find("tokenizer")) for_each_tokenizer_file(*tokenizer, change);
}

TextDataConfig TextDataConfig::below(const std::string& root) const {
  TextDataConfig moved = *this;
  if (root.empty()) return moved;
  const auto move = [&](std::string& file) { file = (std::filesystem::path(root) / file).string(); };
  std::ranges::for_each(moved.files, move);
  for_each_tokenizer_file(moved.tokenizer, move);
  return moved;
}

DataSplits TextDataConfig::load(const std::string& root, std::uint64_t seed) const {
  const TextSplits splits = load_text(below(root), seed);
  const auto subset = [](const std::shared_ptr<const TextDataset>& part) { return part ? all_of(part) : Subset(); };
  return {subset(splits.train), subset(splits.val), subset(splits.test)};
}

TextSplits load_text(const TextDataConfig& config, std::uint64_t seed, const PieceSizes& sizes) {
  const TextTask task = task_named(config.task);
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(config.tokenizer, task == TextTask::masked_token);
  const std::shared_ptr<const TokenStore> store = tokens_of(config.files, *tokenizer, sizes);
  const auto share = [&](double per_cent) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(store->tokens().size()) * per_cent / 100));
  };
  const std::array<std::int64_t, 4> ends{0, share(config.split[0]), share(config.split[0] + config.split[1]),
                                         store->tokens().size()};
  const auto part = [&](std::size_t index, const char* name) -> std::shared_ptr<const TextDataset> {
    if (config.split[index] == 0) return nullptr;
    const TextDataset::Options options{.task = task,
                                       .windows = index == 0 ? TextDataset::Windows::training : TextDataset::Windows::evaluation,
                                       .sequence = config.sequence,
                                       .seed = seed};
    return std::make_shared<const TextDataset>(store, tokenizer, config.files,
                                               TextDataset::Split{name, ends[index], ends[index + 1]}, options);
  };
  return {part(0, "train"), part(1, "val"), part(2, "test")};
}

std::shared_ptr<const Tokenizer> tokenizer_of(const TextDescription& description) {
  const bool with_mask = task_named(description.task) == TextTask::masked_token;
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(description.tokenizer, with_mask);
  TESSERA_CHECK(tokenizer->fingerprint() == description.fingerprint, ConfigError, "tokenizer ", tokenizer->name(),
                ": the files of ", to_json(description.tokenizer), " are not those that the run had");
  return tokenizer;
}

}  // namespace tessera
