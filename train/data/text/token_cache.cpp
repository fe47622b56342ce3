#include "train/data/text/token_cache.h"

#include <unistd.h>

#include "core/io/answer_cache.h"
#include "core/io/atomic_file.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".tokens";

// The key includes the version of the tokenizer's library, because another version may make other tokens.
std::string key_of(const std::vector<std::string>& hashes, const Tokenizer& tokenizer) {
  std::string question = str("tokens, 2: ", tokenizer.fingerprint(), ' ', tokenizer.library());
  for (const std::string& hash : hashes) question += ' ' + hash;
  return xxh3_128(question);
}

// The cache folder if it can be written to; otherwise empty.
fs::path usable_cache_folder() {
  const fs::path folder = cache_folder();
  if (folder.empty()) return {};
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK) == 0) return folder;
  log(LogLevel::info, str("cache: ", folder.string(), " cannot be written; tokens are kept for this run only"));
  return {};
}

std::shared_ptr<const TokenStore> kept(const fs::path& path, std::string_view key) {
  try {
    if (real_vfs().exists(path)) return std::make_shared<const TokenStore>(path.string(), key);
  } catch (const IoError& error) {
    log_warning(str("cache: ", error.what(), "; the text is tokenised again"));
  }
  return nullptr;
}

}  // namespace

TokenStore::TokenStore(const std::string& path, std::string_view key, std::unique_ptr<ScratchFolder> folder)
    : folder_(std::move(folder)), file_(path), tokens_(file_.bytes(), key, path) {}

std::string token_key(const std::vector<std::string>& files, const Tokenizer& tokenizer) {
  std::vector<std::string> hashes;
  for (const std::string& file : files) hashes.push_back(hash_of_file(file));
  return key_of(hashes, tokenizer);
}

void write_tokens(Vfs& vfs, const std::string& path, std::string_view key, const std::vector<std::string>& files,
                  const Tokenizer& tokenizer, const PieceSizes& sizes) {
  write_atomically(vfs, path, [&](WritableFile& file) {
    TokenFileWriter writer(file, key, tokenizer.vocabulary());
    std::vector<std::string> hashes;
    std::vector<TokenId> ids;
    for (const std::string& text : files) {
      if (!hashes.empty() && tokenizer.end_of_text()) writer.add(std::vector{*tokenizer.end_of_text()}, 0);
      writer.begin_text();
      hashes.push_back(for_each_piece(text, tokenizer, sizes, [&](std::string_view piece) {
        ids.clear();
        tokenizer.encode(piece, ids);
        writer.add(ids, piece.size());
      }));
    }
    TESSERA_CHECK(key_of(hashes, tokenizer) == key, IoError, files.front(), files.size() > 1 ? " or a file beside it" : "",
                  ": changed while it was tokenised");
    writer.finish();
  });
}

std::shared_ptr<const TokenStore> tokens_of(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                                            const PieceSizes& sizes) {
  const std::string key = token_key(files, tokenizer);
  const fs::path folder = usable_cache_folder();
  std::unique_ptr<ScratchFolder> scratch;
  if (folder.empty()) scratch = std::make_unique<ScratchFolder>("tessera-tokens");
  const fs::path path = (folder.empty() ? scratch->path() : folder) / str(key, kExtension);
  if (!folder.empty()) {
    remove_all_unfinished(folder, kExtension);
    if (auto found = kept(path, key)) return found;
  }
  write_tokens(real_vfs(), path.string(), key, files, tokenizer, sizes);
  log(LogLevel::debug, str("text: tokens are in ", path.string()));
  return std::make_shared<const TokenStore>(path.string(), key, std::move(scratch));
}

}  // namespace tessera
