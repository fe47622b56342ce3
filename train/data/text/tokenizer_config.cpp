#include "train/data/text/tokenizer_config.h"

#include <array>
#include <variant>

#include "core/config/suggest.h"
#include "core/support/error.h"
#include "train/data/text/bpe_tokenizer.h"
#include "train/data/text/byte_tokenizer.h"
#include "train/data/text/sentencepiece_tokenizer.h"
#include "train/data/text/wordpiece_tokenizer.h"

namespace tessera {
namespace {

struct BpeFiles {
  std::string vocab, merges;

  void fields(Fields& f) {
    f.add("vocab", vocab, {.help = "vocab.json of Hugging Face", .required = true});
    f.add("merges", merges, {.help = "merges.txt of Hugging Face", .required = true});
    f.require(!vocab.empty() && !merges.empty(), "vocab", "needs the names of two files");
  }
};

struct WordPieceFiles {
  std::string vocab;
  bool lower_case = true;

  void fields(Fields& f) {
    f.add("vocab", vocab, {.help = "vocab.txt of BERT", .required = true});
    f.add("lower_case", lower_case, {.help = "drop case and accents"});
    f.require(!vocab.empty(), "vocab", "needs the name of a file");
  }
};

constexpr std::array<std::string_view, 4> kNames{ByteTokenizer::kName, BpeTokenizer::kName, WordPieceTokenizer::kName,
                                                 SentencePieceTokenizer::kName};
constexpr std::string_view kForms = "bytes, {bpe: {vocab: F, merges: F}}, {wordpiece: {vocab: F}} or {sentencepiece: F}";

struct Named {
  std::string name;
  const Value* keys = nullptr;  // null if only the name is given
  Mark mark;
};

// The tokenizer that the value names. The name is empty if the value has another form.
Named named(const Value& value) {
  if (value.is_string()) return {value.as_string(), nullptr, value.mark()};
  if (!value.is_map() || value.as_map().size() != 1) return {};
  const Value::Entry& entry = value.as_map().front();
  return {entry.key, &entry.value, entry.mark};
}

void check_unknown(const Named& given, std::string_view path, std::vector<ConfigProblem>& problems) {
  const std::vector<std::string> near = nearest_names(given.name, kNames, 1);
  problems.push_back({given.mark, std::string(path),
                      str("unknown tokenizer '", given.name, "'; ",
                          near.empty() ? str("needs ", kForms) : str("did you mean '", near[0], "'?"))});
}

template <class Files>
void check_files(const Value& keys, const std::string& path, std::vector<ConfigProblem>& problems) {
  Files files;
  read(keys, files, path, problems);
}

}  // namespace

void check_tokenizer(const Value& value, std::string_view path, std::vector<ConfigProblem>& problems) {
  const Named given = named(value);
  if (given.name.empty()) {
    problems.push_back({value.mark(), std::string(path), str("is ", value.kind_name(), "; needs ", kForms)});
  } else if (std::ranges::find(kNames, given.name) == kNames.end()) {
    check_unknown(given, path, problems);
  } else if (given.name == ByteTokenizer::kName) {
    if (given.keys) problems.push_back({given.mark, join(path, given.name), "has no keys; write tokenizer: bytes"});
  } else if (!given.keys) {
    problems.push_back({given.mark, std::string(path), str("'", given.name, "' needs files; write ", kForms)});
  } else if (given.name == BpeTokenizer::kName) {
    check_files<BpeFiles>(*given.keys, join(path, given.name), problems);
  } else if (given.name == WordPieceTokenizer::kName) {
    check_files<WordPieceFiles>(*given.keys, join(path, given.name), problems);
  } else if (!is_file_name(*given.keys)) {
    problems.push_back({given.mark, join(path, given.name), "needs the name of a file"});
  }
}

std::shared_ptr<const Tokenizer> make_tokenizer(const Value& value, bool with_mask) {
  std::vector<ConfigProblem> problems;
  check_tokenizer(value, "tokenizer", problems);
  if (!problems.empty()) throw_config_error(problems);
  const Named given = named(value);
  if (given.name == BpeTokenizer::kName) {
    const auto files = read<BpeFiles>(*given.keys);
    return std::make_shared<BpeTokenizer>(files.vocab, files.merges);
  }
  if (given.name == WordPieceTokenizer::kName) {
    const auto files = read<WordPieceFiles>(*given.keys);
    return std::make_shared<WordPieceTokenizer>(files.vocab, files.lower_case);
  }
  if (given.name == SentencePieceTokenizer::kName) return std::make_shared<SentencePieceTokenizer>(given.keys->as_string());
  return std::make_shared<ByteTokenizer>(with_mask);
}

void for_each_tokenizer_file(Value& value, const ChangeFile& change) {
  if (!value.is_map()) return;
  for (Value::Entry& entry : value.as_map()) {
    change_file_name(entry.value, change);
    if (!entry.value.is_map()) continue;
    for (Value::Entry& key : entry.value.as_map()) change_file_name(key.value, change);
  }
}

}  // namespace tessera
