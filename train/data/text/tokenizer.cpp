#include "train/data/text/tokenizer.h"

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/data/text/unicode.h"

namespace tessera {

void Tokenizer::check_id(TokenId id) const {
  TESSERA_CHECK(id >= 0 && id < vocabulary(), ConfigError, "tokenizer ", name(), ": no token has the number ", id,
                "; the vocabulary has ", vocabulary());
}

std::size_t cut_before_white_space(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 1;) {
    const char byte = text[at];
    const bool blank = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
    if (blank && !unicode::is_space(unicode::character_before(text, at).code)) return at;
  }
  return 0;
}

std::string read_vocabulary(const std::string& path) {
  constexpr std::uint64_t kMost = 64 << 20;
  const std::uint64_t size = real_vfs().file_size(path);
  TESSERA_CHECK(size <= kMost, IoError, path, ": has ", size, " bytes; a vocabulary has at most ", kMost);
  return real_vfs().read_file(path);
}

std::vector<std::string> lines_of(std::string_view vocabulary) {
  std::vector<std::string> lines = split(vocabulary, '\n');
  if (lines.back().empty()) lines.pop_back();  // after the end of the last line
  for (std::string& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  return lines;
}

}  // namespace tessera
