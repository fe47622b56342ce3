// The JSON header of a safetensors file, as the reader and writer of core/io/safetensors.cpp share it. Written for hostile input:
// a general JSON parser keeps the last of two duplicate keys, turns large integers into doubles and allocates per nesting level.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace tessera::safetensors {

inline constexpr std::uint64_t kMaxHeaderBytes = 64u << 20;  // the format allows 100,000,000; a million tensors need less
inline constexpr std::size_t kMaxTensors = 1'000'000;
inline constexpr std::size_t kMaxNameBytes = 4096;

struct Entry {
  std::string name;
  std::string dtype;  // the file's spelling: "F32", "BF16", ...
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // offsets into the data
  std::int64_t end = 0;
};

struct Header {
  std::map<std::string, std::string> metadata;
  std::vector<Entry> entries;  // in the order of the file
};

// Bits per element of the format's dtype, 0 when the format has no such dtype.
int bits_of(std::string_view dtype) noexcept;
std::string_view spelling_of(DType dtype) noexcept;
// Throws IoError when the dtype is not one of tessera's.
DType parse_dtype(const Entry& entry, std::string_view origin);

// Syntax and schema only; sizes and offsets are the reader's to check. Throws IoError with the byte position.
Header parse_header(std::string_view json, std::string_view origin);
std::string write_header(const Header& header);

}  // namespace tessera::safetensors
