#include "core/strided_product.h"

namespace tessera {
namespace {

MatrixStrides regular_factor(MatrixStrides s, std::int64_t rows, std::int64_t columns) {
  if (columns == 1 && rows == 1) return {s.batch, 1, 1};
  if (columns == 1) return s.row == 1 ? MatrixStrides{s.batch, 1, rows} : MatrixStrides{s.batch, s.row, 1};
  if (rows == 1) return s.column == 1 ? MatrixStrides{s.batch, columns, 1} : MatrixStrides{s.batch, 1, s.column};
  return s;
}

}  // namespace

StridedProduct regular(StridedProduct p) {
  p.a = regular_factor(p.a, p.m, p.k);
  p.b = regular_factor(p.b, p.k, p.n);
  p.y = {p.y.batch, p.m == 1 ? p.n : p.y.row, 1};
  return p;
}

}  // namespace tessera
