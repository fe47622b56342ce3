// safetensors files: u64 header length | JSON header | tensor bytes. Format: https://github.com/huggingface/safetensors.
// Readable from Python with no code of ours; see tests/oracle/read_safetensors.py.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace tessera {

struct SafetensorsFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  // "format" = "pt" is added by the writer when absent
};

// The same bytes for the same content: metadata keys sorted, tensors by descending alignment of their dtype and then by name,
// without gaps, header padded with spaces to a multiple of 8. Tensors may be strided and on any device.
// Throws IoError on what the reader would refuse: an empty or over-long name, bytes that are not UTF-8.
std::string encode_safetensors(const SafetensorsFile& file);
// Piece by piece, so that a large file need not be in memory twice.
void encode_safetensors(const SafetensorsFile& file, const std::function<void(std::string_view)>& sink);

// Metadata key of a checksum of everything else in the file, names and metadata included. The format itself has none: a changed
// bit in the data would be another weight.
inline constexpr std::string_view kChecksumKey = "tessera.xxh3_128";
void add_checksum(SafetensorsFile& file);

// CPU tensors of f32, bf16, f16, f64, i32, i64 and u8. Validates everything before it allocates: header length, UTF-8, the
// fixed JSON schema (no duplicate, unknown or missing key; integers only), sizes without overflow, and tensors that cover the
// data exactly once without gap, overlap or trailing byte; and the checksum, of a file that has one. Throws IoError:
// "safetensors: <origin>: ...", naming the tensor.
SafetensorsFile decode_safetensors(std::string_view bytes, std::string_view origin);

}  // namespace tessera
