// Matrix products by cuBLASLt.
#pragma once

#include <cstddef>
#include <string>

#include "core/strided_product.h"
#include "core/tensor.h"

namespace tessera::cuda {

// What one product reads and writes, all on one device, contiguous and row-major: y [batch, m, n] = op(a) op(b), with a [batch,
// m, k] and b [batch, k, n], or their transposes. a and b are of one dtype, y of the same or, with half factors, f32. Half
// factors are multiplied exactly and added up in f32, f32 ones in f32 unless tf32_products().
struct Product {
  const Tensor& a;
  const Tensor& b;
  const Tensor& y;
  bool transpose_a = false;
  bool transpose_b = false;
  // [n], added to every row; of y's dtype or f32. To half results the library adds it rounded to their dtype.
  Tensor bias = {};
  bool relu = false;  // y = max(y, 0), after the bias
  // [m], of y's dtype: receives the sums of op(a) over k, which are a bias's gradient where a is that of its layer's output.
  Tensor row_sums = {};
};

// Writes every element of y, zeros and the epilogue where k is 0. Equal operands give equal bytes on one kind of GPU. `operation`
// names the caller in errors.
void multiply(const Product& product, const char* operation);

// The same without an epilogue, of matrices that lie in tensors with strides. All sizes are positive; elements are f32 or f64.
// Each of a and b has a row or column stride of 1 and the other at least as large as a dense matrix's, y a column stride of 1; a
// stride of a dimension of size 1 does not matter. Throws DeviceError where the library has no algorithm.
void multiply(const StridedProduct& product, const StridedOperands& operands, const char* operation);

// How often this thread ran the library's algorithm of this name: shows that a forced choice was obeyed.
std::size_t product_runs(const std::string& algorithm);

}  // namespace tessera::cuda
