#include "core/io/safetensors_header.h"

#include <array>
#include <utility>

#include "core/support/error.h"

namespace tessera::safetensors {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 22> kDtypeBits{{
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
}};

std::string json_string(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

int bits_of(std::string_view dtype) noexcept {
  for (const auto& [name, bits] : kDtypeBits) {
    if (name == dtype) return bits;
  }
  return 0;
}

std::string_view spelling_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32: return "F32";
    case DType::bf16: return "BF16";
    case DType::f16: return "F16";
    case DType::f64: return "F64";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
    case DType::u8: return "U8";
  }
  return "";
}

DType parse_dtype(const Entry& entry, std::string_view origin) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8}) {
    if (spelling_of(dtype) == entry.dtype) return dtype;
  }
  throw IoError(str("safetensors: ", origin, ": tensor '", entry.name, "' has ", bits_of(entry.dtype) ? "" : "unknown ", "dtype ",
                    entry.dtype, "; tessera reads F32, BF16, F16, F64, I32, I64 and U8"));
}

std::string write_header(const Header& header) {
  std::string json = "{";
  const auto comma = [&] { return json.size() > 1 ? "," : ""; };
  if (!header.metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const char* separator = ""; const auto& [key, value] : header.metadata) {
      json += str(std::exchange(separator, ","), json_string(key), ":", json_string(value));
    }
    json += "}";
  }
  for (const Entry& entry : header.entries) {
    json += str(comma(), json_string(entry.name), ":{\"dtype\":\"", entry.dtype, "\",\"shape\":[");
    for (const char* separator = ""; const std::int64_t size : entry.shape) json += str(std::exchange(separator, ","), size);
    json += str("],\"data_offsets\":[", entry.begin, ",", entry.end, "]}");
  }
  return json + "}";
}

}  // namespace tessera::safetensors
