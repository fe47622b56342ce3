// The file that keeps the tokens of texts:
//   64 bytes: "tessera tokens\n\0", u32 version, u32 bytes of an id (2 or 4), key (32 characters), 8 bytes of 0
//   the ids, one after the other
//   for each text: u64 its first token, u64 its bytes
//   48 bytes: u64 texts, u64 tokens, XXH3-128 of everything before it but the key (32 characters)
// Numbers are little-endian. The key says what the tokens were made from. The last bytes show that the file is whole; equal
// tokens have equal last bytes, whatever made them.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/vfs.h"
#include "core/support/hash.h"
#include "train/data/text/tokenizer.h"

namespace tessera {

// Writes one from its beginning to its end.
class TokenFileWriter {
 public:
  TokenFileWriter(WritableFile& file, std::string_view key, std::int64_t vocabulary);
  void begin_text();
  void add(std::span<const TokenId> ids, std::size_t text_bytes);  // of the text that was begun
  void finish();

 private:
  void write(std::string_view bytes);

  WritableFile& file_;
  Xxh3Stream hash_;
  std::size_t width_;
  std::uint64_t tokens_ = 0;
  std::vector<std::uint64_t> texts_;  // first token, bytes
  std::string buffer_;
};

// What such a file holds. A view: the bytes must outlive it.
class TokenFile {
 public:
  struct Text {
    std::int64_t first = 0;
    std::int64_t bytes = 0;
  };

  TokenFile() = default;
  // Throws IoError naming `path` where the bytes are not whole, of another version or of another key.
  TokenFile(std::string_view bytes, std::string_view key, const std::string& path);

  std::int64_t size() const noexcept { return tokens_; }
  TokenId at(std::int64_t index) const {  // < size()
    std::uint32_t id = 0;
    std::memcpy(&id, ids_ + static_cast<std::size_t>(index) * width_, width_);
    return static_cast<TokenId>(id);
  }
  const std::vector<Text>& texts() const noexcept { return texts_; }
  std::string_view digest() const noexcept { return digest_; }  // its last bytes

 private:
  std::string_view digest_;
  const char* ids_ = nullptr;
  std::size_t width_ = 0;
  std::int64_t tokens_ = 0;
  std::vector<Text> texts_;
};

}  // namespace tessera
