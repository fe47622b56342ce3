#include "train/data/text/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "core/support/error.h"

namespace tessera::unicode {
namespace {

constexpr std::int32_t kReplacement = 0xFFFD;

const utf8proc_uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const utf8proc_uint8_t*>(text.data()); }

}  // namespace

std::string library() { return str("utf8proc ", utf8proc_version()); }

Character character_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  utf8proc_int32_t code = -1;
  const std::string_view rest = text.substr(at, 4);
  const utf8proc_ssize_t size = utf8proc_iterate(bytes_of(rest), static_cast<utf8proc_ssize_t>(rest.size()), &code);
  return size > 0 ? Character{code, static_cast<std::size_t>(size)} : Character{kReplacement, 1};
}

Character character_before(std::string_view text, std::size_t end) {
  for (std::size_t size = 1; size <= 4 && size <= end; ++size) {
    if ((static_cast<unsigned char>(text[end - size]) & 0xC0) == 0x80) continue;
    const Character found = character_at(text.substr(0, end), end - size);
    if (found.bytes == size) return found;
    break;
  }
  return {kReplacement, 1};
}

void append(std::string& text, std::int32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code, bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

std::size_t count(std::string_view text) {
  std::size_t characters = 0;
  for (const char byte : text) characters += (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
  return characters;
}

bool is_letter(std::int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_number(std::int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_space(std::int32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_punctuation(std::int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_control(std::int32_t code) {
  const utf8proc_category_t category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_nonspacing_mark(std::int32_t code) { return utf8proc_category(code) == UTF8PROC_CATEGORY_MN; }

std::int32_t lower(std::int32_t code) { return utf8proc_tolower(code); }

std::string decomposed(std::string_view text) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &result,
                                             static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  TESSERA_CHECK(size >= 0, IoError, "unicode: cannot decompose ", text.size(), " bytes: ", utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(result), static_cast<std::size_t>(size));
}

}  // namespace tessera::unicode
