#include "train/data/text/text_pieces.h"

#include <algorithm>

#include "core/io/file_reader.h"
#include "core/support/error.h"
#include "core/support/hash.h"
#include "train/config/utf8.h"

namespace tessera {
namespace {

// Checks pieces of a file for UTF-8. It counts bytes and lines so far, so that a message can tell the place.
class Utf8Check {
 public:
  explicit Utf8Check(const std::string& path) : path_(path) {}

  void pass(std::string_view piece) {
    const std::size_t bad = find_invalid_utf8(piece);
    const std::string_view good = piece.substr(0, std::min(bad, piece.size()));
    lines_ += static_cast<std::size_t>(std::ranges::count(good, '\n'));
    offset_ += good.size();
    TESSERA_CHECK(bad == std::string_view::npos, IoError, path_, ":", lines_ + 1, ": byte ", offset_,
                  " of the file is no UTF-8; convert it, or use tokenizer: bytes");
  }

 private:
  const std::string& path_;
  std::size_t offset_ = 0;
  std::size_t lines_ = 0;
};

}  // namespace

std::string for_each_piece(const std::string& path, const Tokenizer& tokenizer, const PieceSizes& sizes,
                           const std::function<void(std::string_view piece)>& take) {
  FileReader file(path);
  Xxh3Stream hash;
  Utf8Check utf8(path);
  std::string held;
  std::size_t wanted = sizes.usual;
  bool any = false;
  for (bool end = false; !end;) {
    const std::size_t before = held.size();
    held.resize(wanted);
    const std::size_t count = file.read(held.data() + before, wanted - before);
    held.resize(before + count);
    hash.update(std::string_view(held).substr(before));
    end = held.size() < wanted;
    const std::size_t cut = end ? held.size() : tokenizer.cut(held);
    TESSERA_CHECK(cut > 0 || end || wanted < sizes.longest, IoError, path, ": ", wanted,
                  " bytes in a row without a place where tokenizer ", tokenizer.name(), " may cut; is it text?");
    const std::string_view piece(held.data(), cut);
    if (!piece.empty()) {
      if (tokenizer.needs_utf8()) utf8.pass(piece);
      take(piece);
      any = true;
    }
    held.erase(0, cut);
    wanted = cut > 0 ? std::max(sizes.usual, held.size() + 1) : std::min(2 * wanted, sizes.longest);
  }
  TESSERA_CHECK(any, IoError, path, ": is empty; needs text");
  return hash.hex();
}

std::string hash_of_file(const std::string& path) {
  FileReader file(path);
  Xxh3Stream hash;
  std::string bytes(std::size_t{1} << 20, '\0');
  for (std::size_t count = bytes.size(); count == bytes.size();) {
    count = file.read(bytes.data(), bytes.size());
    hash.update(std::string_view(bytes.data(), count));
  }
  return hash.hex();
}

}  // namespace tessera
