#include "train/data/text/token_file.h"

#include "core/support/error.h"

namespace tessera {
namespace {

constexpr std::string_view kMagic{"tessera tokens\n\0", 16};
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeader = 64, kKey = 32, kTrailer = 16 + kKey, kTextEntry = 16;
constexpr std::size_t kKeyAt = kMagic.size() + 8;

template <class T>
void append(std::string& bytes, T number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

}  // namespace

TokenFileWriter::TokenFileWriter(WritableFile& file, std::string_view key, std::int64_t vocabulary)
    : file_(file), width_(vocabulary <= 65536 ? 2 : 4) {
  TESSERA_CHECK(key.size() == kKey, InternalError, "token file: key has ", key.size(), " characters; needs ", kKey);
  std::string header(kMagic);
  append(header, kVersion);
  append(header, static_cast<std::uint32_t>(width_));
  hash_.update(header);
  header += key;
  header.resize(kHeader, '\0');
  file_.write(header);
}

void TokenFileWriter::write(std::string_view bytes) {
  hash_.update(bytes);
  file_.write(bytes);
}

void TokenFileWriter::begin_text() { texts_.insert(texts_.end(), {tokens_, 0}); }

void TokenFileWriter::add(std::span<const TokenId> ids, std::size_t text_bytes) {
  buffer_.resize(ids.size() * width_);
  for (std::size_t i = 0; i < ids.size(); ++i) std::memcpy(buffer_.data() + i * width_, &ids[i], width_);
  write(buffer_);
  tokens_ += ids.size();
  texts_.back() += text_bytes;
}

void TokenFileWriter::finish() {
  std::string end;
  for (const std::uint64_t number : texts_) append(end, number);
  append(end, static_cast<std::uint64_t>(texts_.size() / 2));
  append(end, tokens_);
  write(end);
  file_.write(hash_.hex());
}

TokenFile::TokenFile(std::string_view bytes, std::string_view key, const std::string& path) {
  TESSERA_CHECK(bytes.size() >= kHeader + kTrailer && bytes.starts_with(kMagic), IoError, path, ": is no file of tokens");
  const auto version = number_at<std::uint32_t>(bytes, kMagic.size());
  TESSERA_CHECK(version == kVersion, IoError, path, ": has version ", version, "; needs ", kVersion);
  const std::string_view sealed = bytes.substr(0, bytes.size() - kKey);
  digest_ = bytes.substr(sealed.size());
  Xxh3Stream hash;
  hash.update(sealed.substr(0, kKeyAt));
  hash.update(sealed.substr(kHeader));
  TESSERA_CHECK(hash.hex() == digest_, IoError, path, ": is damaged: its checksum differs");
  TESSERA_CHECK(bytes.substr(kKeyAt, kKey) == key, IoError, path, ": holds the tokens of other files");
  width_ = number_at<std::uint32_t>(bytes, kMagic.size() + 4);
  const auto texts = number_at<std::uint64_t>(bytes, sealed.size() - 16);
  const auto tokens = number_at<std::uint64_t>(bytes, sealed.size() - 8);
  const std::size_t room = bytes.size() - kHeader - kTrailer;
  const bool fits = (width_ == 2 || width_ == 4) && texts <= room / kTextEntry && tokens <= room / width_ &&
                    tokens * width_ + texts * kTextEntry == room;
  TESSERA_CHECK(fits, IoError, path, ": ", tokens, " tokens of ", texts, " texts do not fit its ", bytes.size(), " bytes");
  ids_ = bytes.data() + kHeader;
  tokens_ = static_cast<std::int64_t>(tokens);
  for (std::size_t i = 0, at = kHeader + tokens * width_; i < texts; ++i, at += kTextEntry) {
    texts_.push_back({number_at<std::int64_t>(bytes, at), number_at<std::int64_t>(bytes, at + 8)});
  }
}

}  // namespace tessera
