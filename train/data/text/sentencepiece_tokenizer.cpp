#include "train/data/text/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>

#include "core/support/error.h"
#include "core/support/hash.h"

namespace tessera {
namespace {

constexpr std::string_view kBlank = "\xE2\x96\x81";  // U+2581, which stands for a blank in pieces

// Bytes of the text that a piece stands for when it is not the first of a text.
std::int64_t text_bytes(std::string_view piece) {
  std::int64_t bytes = static_cast<std::int64_t>(piece.size());
  for (std::size_t at = piece.find(kBlank); at != std::string_view::npos; at = piece.find(kBlank, at + kBlank.size())) {
    bytes -= static_cast<std::int64_t>(kBlank.size()) - 1;
  }
  return bytes;
}

std::optional<TokenId> present(int id) { return id >= 0 ? std::optional<TokenId>(id) : std::nullopt; }

}  // namespace

struct SentencePieceTokenizer::Model {
  sentencepiece::SentencePieceProcessor processor;
};

SentencePieceTokenizer::SentencePieceTokenizer(const std::string& path) : path_(path), model_(std::make_unique<Model>()) {
  const std::string file = read_vocabulary(path);
  sentencepiece::SentencePieceProcessor& model = model_->processor;
  const auto status = model.LoadFromSerializedProto(file);
  TESSERA_CHECK(status.ok(), IoError, path, ": is no SentencePiece model: ", status.ToString());
  for (int id = 0; id < model.GetPieceSize(); ++id) {
    const std::string& piece = model.IdToPiece(id);
    const bool hides = piece == "<mask>" || piece == "[MASK]";
    special_.push_back(model.IsControl(id) || model.IsUnknown(id) || hides);
    bytes_.push_back(special_.back() || model.IsUnused(id) ? 0 : model.IsByte(id) ? 1 : text_bytes(piece));
    if (hides && !mask_) mask_ = id;
  }
  end_of_text_ = present(model.eos_id());
  unknown_ = present(model.unk_id());
  fingerprint_ = xxh3_128(str(kName, ' ', xxh3_128(file)));
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

std::string SentencePieceTokenizer::library() const { return "sentencepiece " TESSERA_SENTENCEPIECE_VERSION; }

void SentencePieceTokenizer::encode(std::string_view text, std::vector<TokenId>& ids) const {
  std::vector<int> line_ids;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const auto status = model_->processor.Encode(text.substr(begin, end - begin), &line_ids);
    TESSERA_CHECK(status.ok(), IoError, "sentencepiece: ", path_, " encodes no text: ", status.ToString());
    ids.insert(ids.end(), line_ids.begin(), line_ids.end());
    begin = end;
  }
}

std::string SentencePieceTokenizer::decode(std::span<const TokenId> ids) const {
  for (const TokenId id : ids) check_id(id);
  std::vector<int> textual;
  std::ranges::copy_if(ids, std::back_inserter(textual), [this](TokenId id) { return !is_special(id) || id == unknown_; });
  std::string text;
  const auto status = model_->processor.Decode(textual, &text);
  TESSERA_CHECK(status.ok(), IoError, "sentencepiece: ", path_, " decodes no tokens: ", status.ToString());
  return text;
}

Value SentencePieceTokenizer::config() const {
  Value config = Value::map();
  config.set(kName, path_);
  return config;
}

}  // namespace tessera
