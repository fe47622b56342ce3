// NumPy's files of one array: "\x93NUMPY" | version | header length | a Python dict of descr, fortran_order and shape | elements.
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, versions 1.0 to 3.0.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>

#include "core/dtype.h"
#include "core/shape.h"

namespace tessera {

// One that is read piece by piece, so that a large array need not be in memory.
class NpyFile {
 public:
  // Checks the header against the file's size. Throws IoError "path: reason" on what is no such file, on one that ends early or
  // late, and on other arrays than row-major ones (fortran_order False) of float32 ('<f4') or uint8 ('|u1') with up to 8 sizes
  // and 2^40 elements.
  explicit NpyFile(const std::string& path);

  DType dtype() const noexcept { return dtype_; }  // f32 or u8
  const Shape& shape() const noexcept { return shape_; }
  // `count` elements from number `first` on, of dtype(). Throws IoError where the file cannot be read any more.
  void read(std::int64_t first, std::int64_t count, void* out);

 private:
  void parse(const std::string& header);
  void check_size(std::uint64_t bytes) const;

  std::string path_;
  std::ifstream file_;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::uint64_t data_ = 0;  // where the elements begin
};

// The bytes of a file with this array, version 1.0; as numpy.save writes it.
std::string encode_npy(std::span<const float> values, const Shape& shape);

}  // namespace tessera
