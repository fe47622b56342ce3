#include "core/io/safetensors.h"

#include <cstring>

#include "core/support/error.h"
#include "tests/fuzz/targets.h"

namespace tessera::fuzz {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

void check_round_trip(const SafetensorsFile& file, std::size_t file_bytes) {
  std::size_t tensor_bytes = 0;
  for (const auto& [name, tensor] : file.tensors) tensor_bytes += tensor.bytes();
  require(tensor_bytes < file_bytes, "tensors hold more bytes than the file");
  const std::string written = encode_safetensors(file);
  SafetensorsFile again = decode_safetensors(written, "again");
  require(again.tensors.size() == file.tensors.size(), "the number of tensors changed");
  for (const auto& [name, tensor] : file.tensors) {
    require(again.tensors.contains(name) && same(tensor, again.tensors.at(name)), "a tensor changed");
  }
  require(encode_safetensors(again) == written, "the same content gave other bytes");
  if (!file.metadata.contains("format")) again.metadata.erase("format");  // the writer adds it
  require(again.metadata == file.metadata, "metadata changed");
}

}  // namespace

void safetensors(std::string_view bytes) {
  SafetensorsFile file;
  try {
    file = decode_safetensors(bytes, "fuzz.safetensors");
  } catch (const IoError&) {
    return;
  }
  check_round_trip(file, bytes.size());
}

std::vector<std::string> safetensors_seeds() {
  SafetensorsFile every;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8}) {
    every.tensors[str("layer1.0.", dtype)] = Tensor::full({2, 3}, 1, dtype);
  }
  every.tensors["scalar"] = Tensor::scalar(0.5);
  every.tensors["none"] = Tensor::zeros({2, 0});
  every.metadata["tessera.layout"] = std::string("OHWI");
  every.metadata["\xc3\xa9\n"] = std::string("\"\\\x01");
  const SafetensorsFile one{.tensors = {{"w", Tensor::scalar(1)}}, .metadata = {}};
  SafetensorsFile sealed = one;
  add_checksum(sealed);
  return {encode_safetensors(every), encode_safetensors(one), encode_safetensors(sealed), encode_safetensors({})};
}

}  // namespace tessera::fuzz
