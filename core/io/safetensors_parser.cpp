#include <set>
#include <utility>

#include "core/io/safetensors_header.h"
#include "core/support/error.h"

namespace tessera::safetensors {
namespace {

constexpr std::size_t kMaxFormatRank = 32;

// Length of the UTF-8 sequence at the front of `text`; 0 if there is none (truncated, overlong, surrogate, past U+10FFFF).
std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

class Parser {
 public:
  Parser(std::string_view json, std::string_view origin) : json_(json), origin_(origin) {}

  Header parse() {
    Header header;
    std::set<std::string> names;
    bool has_metadata = false;
    object([&](std::string key) {
      if (key == "__metadata__") {
        if (std::exchange(has_metadata, true)) fail("'__metadata__' stands twice");
        header.metadata = metadata();
        return;
      }
      if (key.empty()) fail("a tensor has an empty name");
      if (!names.insert(key).second) fail(str("tensor '", key, "' stands twice"));
      if (names.size() > kMaxTensors) fail(str("more than ", kMaxTensors, " tensors"));
      header.entries.push_back(entry(std::move(key)));
    });
    skip_space();
    if (at_ != json_.size()) fail("bytes after the header's closing brace; only white space may follow");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const std::string tensor = tensor_.empty() ? std::string() : str("tensor '", tensor_, "': ");
    throw IoError(str("safetensors: ", origin_, ": header: ", tensor, what, ", at byte ", at_));
  }

  char peek() const noexcept { return at_ < json_.size() ? json_[at_] : '\0'; }
  void skip_space() noexcept {
    while (at_ < json_.size() && (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t')) ++at_;
  }
  bool accept(char c) noexcept {
    skip_space();
    if (at_ >= json_.size() || json_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(at_ >= json_.size() ? str("ends where '", c, "' is due") : str("'", c, "' is due"));
  }

  // Parses an object. member(key), called after each colon, reads the value.
  template <class Member>
  void object(Member&& member) {
    expect('{');
    if (accept('}')) return;
    do {
      skip_space();
      std::string key = string();
      expect(':');
      member(std::move(key));
    } while (accept(','));
    expect('}');
  }

  std::map<std::string, std::string> metadata() {
    std::map<std::string, std::string> values;
    object([&](const std::string& key) {
      skip_space();
      if (peek() != '"') fail(str("metadata '", key, "' is not text"));
      if (!values.emplace(key, string(kMaxHeaderBytes)).second) fail(str("metadata '", key, "' stands twice"));
    });
    return values;
  }

  Entry entry(std::string name) {
    Entry entry;
    entry.name = std::move(name);
    tensor_ = entry.name;
    bool has_dtype = false;
    bool has_shape = false;
    bool has_offsets = false;
    object([&](const std::string& key) {
      bool* seen = key == "dtype" ? &has_dtype : key == "shape" ? &has_shape : key == "data_offsets" ? &has_offsets : nullptr;
      if (!seen) fail(str("unknown field '", key, "'"));
      if (std::exchange(*seen, true)) fail(str("field '", key, "' stands twice"));
      if (seen == &has_dtype) {
        skip_space();
        entry.dtype = string();
      } else if (seen == &has_shape) {
        entry.shape = integers(kMaxFormatRank);
      } else {
        const std::vector<std::int64_t> offsets = integers(2);
        if (offsets.size() != 2) fail(str("needs 2 data_offsets, has ", offsets.size()));
        entry.begin = offsets[0];
        entry.end = offsets[1];
      }
    });
    if (!has_dtype || !has_shape || !has_offsets) fail("lacks dtype, shape or data_offsets");
    tensor_.clear();
    return entry;
  }

  std::vector<std::int64_t> integers(std::size_t most) {
    std::vector<std::int64_t> values;
    expect('[');
    if (accept(']')) return values;
    do {
      if (values.size() == most) fail(str("lists more than ", most, " numbers"));
      values.push_back(integer());
    } while (accept(','));
    expect(']');
    return values;
  }

  std::int64_t integer() {
    skip_space();
    const std::size_t start = at_;
    std::int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, peek() - '0', &value)) {
        fail("a number above 2^63 - 1");
      }
      ++at_;
    }
    const bool leading_zero = at_ - start > 1 && json_[start] == '0';
    const bool goes_on = peek() == '.' || peek() == 'e' || peek() == 'E';
    if (at_ == start || leading_zero || goes_on) fail("a plain non-negative integer is due");
    return value;
  }

  std::string string(std::size_t most = kMaxNameBytes) {
    if (peek() != '"') fail(at_ >= json_.size() ? "ends where a key is due" : "text in double quotes is due");
    ++at_;
    std::string text;
    while (peek() != '"') {
      if (at_ >= json_.size()) fail("ends inside text");
      if (text.size() > most) break;
      if (peek() == '\\') {
        escape(text);
        continue;
      }
      if (static_cast<unsigned char>(peek()) < 0x20) fail("a control character inside text");
      const std::size_t length = utf8_length(json_.substr(at_));
      if (length == 0) fail("not UTF-8");
      text += json_.substr(at_, length);
      at_ += length;
    }
    if (text.size() > most) fail(str("text longer than ", most, " bytes"));
    ++at_;
    return text;
  }

  void escape(std::string& text) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    const char kind = peek();
    ++at_;
    if (kind == 'u') return append_utf8(text, code_point());
    const std::size_t index = kEscapes.find(kind);
    if (index == std::string_view::npos) fail("an unknown escape inside text");
    text += kMeanings[index];
  }

  std::uint32_t code_point() {
    const std::uint32_t first = hex4();
    if (first == 0) fail("a NUL inside text");
    if (first < 0xd800 || first > 0xdfff) return first;
    if (first > 0xdbff || json_.substr(at_, 2) != "\\u") fail("a lone surrogate inside text");
    at_ += 2;
    const std::uint32_t second = hex4();
    if (second < 0xdc00 || second > 0xdfff) fail("a lone surrogate inside text");
    return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
  }

  std::uint32_t hex4() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("\\u needs 4 hexadecimal digits");
      value = value * 16 + static_cast<std::uint32_t>(digit);
    }
    return value;
  }

  std::string_view json_;
  std::string_view origin_;
  std::string tensor_;  // the tensor whose entry is being read; "" outside
  std::size_t at_ = 0;
};

}  // namespace

Header parse_header(std::string_view json, std::string_view origin) { return Parser(json, origin).parse(); }

}  // namespace tessera::safetensors
