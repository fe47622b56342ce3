#include "train/data/text/new_text.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "train/config/utf8.h"

namespace tessera {
namespace {

class TextSample final : public NewSamples {
 public:
  TextSample(std::vector<TokenId> tokens, std::int64_t vocabulary)
      : tokens_(std::move(tokens)), field_{"tokens", DType::i64, Shape{std::ssize(tokens_)}, vocabulary} {}

  const Field& field() const override { return field_; }
  std::int64_t size() const override { return 1; }
  void read(std::int64_t, const Tensor& out) override { std::ranges::copy(tokens_, out.data<std::int64_t>()); }

 private:
  std::vector<TokenId> tokens_;
  Field field_;
};

}  // namespace

std::vector<TokenId> tokens_to_follow(const Tokenizer& tokenizer, const std::string& text, std::string_view what) {
  const std::size_t bad = tokenizer.needs_utf8() ? find_invalid_utf8(text) : std::string::npos;
  TESSERA_CHECK(bad == std::string::npos, ConfigError, what, ": byte ", bad, " is no UTF-8, which tokenizer ", tokenizer.name(),
                " needs");
  std::vector<TokenId> tokens;
  tokenizer.encode(text, tokens);
  if (!tokens.empty()) return tokens;
  TESSERA_CHECK(tokenizer.end_of_text().has_value(), ConfigError, what, " is empty; tokenizer ", tokenizer.name(),
                " has no end of text to begin behind, so that it needs one");
  return {*tokenizer.end_of_text()};
}

std::unique_ptr<NewSamples> new_text(const Tokenizer& tokenizer, const std::string& text, const std::string& name,
                                     std::int64_t longest) {
  try {
    std::vector<TokenId> tokens = tokens_to_follow(tokenizer, text, "the text");
    if (std::ssize(tokens) > longest) tokens.erase(tokens.begin(), tokens.end() - longest);
    return std::make_unique<TextSample>(std::move(tokens), tokenizer.vocabulary());
  } catch (const ConfigError& error) {
    throw IoError(str(name, ": ", error.what()));
  }
}

std::string read_text(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  TESSERA_CHECK(std::filesystem::exists(status), IoError, path, ": no such file");
  TESSERA_CHECK(std::filesystem::is_regular_file(status), IoError, path, ": is no regular file");
  return real_vfs().read_file(path);
}

}  // namespace tessera
