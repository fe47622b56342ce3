#include "core/io/npy.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/support/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace tessera::fuzz {
namespace {

constexpr std::int64_t kPiece = 7;  // elements read at a time

void read_in_pieces(NpyFile& file, std::size_t bytes) {
  const std::int64_t count = file.shape().numel();
  const std::size_t size = file.dtype() == DType::f32 ? sizeof(float) : 1;
  require(static_cast<std::size_t>(count) * size <= bytes, "more elements than the file has bytes");
  std::array<char, kPiece * sizeof(float)> piece{};
  for (std::int64_t first = 0; first < count; first += kPiece) file.read(first, std::min(kPiece, count - first), piece.data());
  if (file.dtype() != DType::f32) return;
  std::vector<float> values(static_cast<std::size_t>(count));
  file.read(0, count, values.data());
  static MemoryFile again;
  again.write(encode_npy(values, file.shape()));
  require(NpyFile(again.path()).shape() == file.shape(), "the shape changed");
}

std::string file_with(const std::string& dict, const std::string& data, char version = 1) {
  const std::string length{static_cast<char>(dict.size()), '\0'};
  return std::string("\x93NUMPY", 6) + version + '\0' + length + (version > 1 ? std::string(2, '\0') : "") + dict + data;
}

}  // namespace

void npy(std::string_view bytes) {
  static MemoryFile memory;
  memory.write(bytes);
  try {
    NpyFile file(memory.path());
    read_in_pieces(file, bytes.size());
  } catch (const IoError&) {
  }
}

std::vector<std::string> npy_seeds() {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  return {encode_npy(values, {2, 3}), encode_npy({}, {0, 4}),
          file_with("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 1), }", "abcd"),
          file_with("{\"shape\": (), 'descr': '<f4', 'fortran_order': False}\n", "abcd", 2)};
}

}  // namespace tessera::fuzz
