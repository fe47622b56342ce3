// cuSPARSE called directly: the rival of our products with a sparse weight.
#pragma once

#include "bench/device_rotation.h"
#include "bench/rivals/onednn_rival.h"
#include "core/sparse_index.h"

namespace tessera::bench {

// y [rows, out] = x [rows, in] w', w [out, in] sparse, on a GPU: x and y of one dtype, f32, bf16 or f16. `values` are f32, one of
// each kept element row by row. A pass writes the tensor that it computes: y, x or values.
struct SparseProduct {
  Tensor x, values, y;

  const Tensor& result(ConvPass pass) const;
};

struct SparseRivals {
  std::vector<RotatedSide> sides;
  std::vector<Refused> unsupported;  // in the library's words
};

// `sets`: the pass on other tensors. cuSPARSE reads and writes the same x and y: to it they are column-major matrices [in, rows]
// and [out, rows], y = w x and x = w' y. Products are timed in its row-major layout too, with a transposition of x and one of y
// by our copies in each call. Products take w in CSR by each of its algorithms and, where what is kept is whole blocks of
// `block`, in BSR and Blocked-ELL; the values' gradient (SDDMM) is in CSR or BSR. Values are rounded to the dtype, laid out, for
// the gradient of x also transposed, and patterns are analysed before any timing; sums are f32.
SparseRivals cusparse_rivals(ConvPass pass, const SparseIndex& index, std::int64_t block, const std::vector<SparseProduct>& sets);

std::string cusparse_version();  // "cuSPARSE 12.6.3"

}  // namespace tessera::bench
