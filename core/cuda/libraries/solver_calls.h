// cuSOLVER's routines on contiguous f64 tensors of one device. It counts in columns: our row-major [m, n] is its [n, m], the
// transpose. Each overwrites its first operand, waits, and returns the library's info: 0 where all went well.
#pragma once

#include "core/tensor.h"

namespace tessera::cuda {

// w [p, q] with p <= q: w = right diag(s) left, left [p, q], s [p] descending, right [p, p].
int factorise(const Tensor& w, const Tensor& left, const Tensor& s, const Tensor& right);

// For each matrix of w [batch, m, n]: the rows of v [batch, m, m] and u [batch, n, n] are all its left and right singular
// vectors, s [batch, min(m, n)] descending.
int factorise_batch(const Tensor& w, const Tensor& u, const Tensor& s, const Tensor& v);

// a [batch, n, n], symmetric; only the lower triangle is read. Its rows become the eigenvectors (with `vectors`), values
// [batch, n] ascending.
int diagonalise(const Tensor& a, const Tensor& values, bool vectors);

// QR of the matrix whose columns are the rows of columns [n, m]: the first entries of each hold r's, the rest the reflections,
// with their scales [min(m, n)].
int reflect(const Tensor& columns, const Tensor& scales);

// The first k = min(m, n) rows of those, columns [k, m], become the columns of q.
int expand_reflections(const Tensor& columns, const Tensor& scales);

}  // namespace tessera::cuda
