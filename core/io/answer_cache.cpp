#include "core/io/answer_cache.h"

#include <cstdlib>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "core/support/hash.h"
#include "core/support/log.h"

namespace tessera {

namespace fs = std::filesystem;

fs::path cache_folder() {
  const char* own = std::getenv("TESSERA_CACHE");
  if (own != nullptr) return own;
  const char* shared = std::getenv("XDG_CACHE_HOME");
  if (shared != nullptr && *shared != '\0') return fs::path(shared) / "tessera";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? fs::path(home) / ".cache/tessera" : fs::path();
}

AnswerCache::AnswerCache(std::string_view question) {
  const fs::path folder = cache_folder();
  if (!folder.empty()) file_ = folder / (xxh3_128(question) + ".json");
}

std::optional<Value> AnswerCache::find() const {
  try {
    if (file_.empty() || !real_vfs().exists(file_)) return {};
    return parse_json(real_vfs().read_file(file_), file_.string());
  } catch (const IoError& error) {
    log(LogLevel::info, str("cache: ", error.what()));
    return {};
  }
}

void AnswerCache::store(const Value& answer) const {
  if (file_.empty()) return;
  try {
    std::error_code ignored;  // the write reports what is wrong
    fs::create_directories(file_.parent_path(), ignored);
    write_file_atomically(real_vfs(), file_, to_json(answer));
  } catch (const IoError& error) {
    log(LogLevel::info, str("cache: ", error.what()));
  }
}

}  // namespace tessera
