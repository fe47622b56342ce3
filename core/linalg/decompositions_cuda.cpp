#include "core/linalg/decompositions_cuda.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "core/cuda/libraries/solver_calls.h"
#include "core/cuda/libraries/solver_signs.h"
#include "core/finite.h"
#include "core/linalg/qr.h"
#include "core/ops/arithmetic.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera::cuda {
namespace {

using linalg::Eigh;
using linalg::Qr;
using linalg::Svd;

Tensor empty_f64(const Shape& shape, const Tensor& beside) { return Tensor::empty(shape, DType::f64, beside.device()); }

// A fresh contiguous copy in double. Throws NumericError on NaN or Inf, as on the CPU.
Tensor checked_copy(const Tensor& a, const char* operation) {
  TESSERA_CHECK(all_finite(a), NumericError, operation, ": matrix ", a.shape(), " contains NaN or Inf");
  const Tensor copy = empty_f64(a.shape(), a);
  copy.copy_from(a);
  return copy;
}

bool succeeded(int info, const char* operation, const Tensor& a) {
  if (info != 0) log_warning(str(operation, ": cuSOLVER reports ", info, " on ", describe(a), "; computed on the CPU instead"));
  return info == 0;
}

// Transposes x [..., m, n] to [..., n, m].
Tensor transposed(const Tensor& x) { return x.rank() == 2 ? x.permute({1, 0}).contiguous() : x.permute({0, 2, 1}).contiguous(); }

// x [..., m, k] with column i times signs[..., i].
Tensor with_signs(const Tensor& x, const Tensor& signs) {
  const Tensor y = Tensor::empty_like(x);
  Shape shape = x.shape();
  shape.set(x.rank() - 2, 1);
  mul(x, signs.reshape(shape), y);
  return y;
}

// Fixes the signs of u [..., m, k] and v [..., n, k], both contiguous and in double.
Svd oriented(const Tensor& u, const Tensor& s, const Tensor& v, DType dtype) {
  const Tensor signs = column_signs(u);
  return {with_signs(u, signs).to(dtype), s.to(dtype), with_signs(v, signs).to(dtype)};
}

// The eigendecomposition of a [batch, n, n]; none if the library failed. With `vectors` false, the vectors stay undefined.
std::optional<Eigh> diagonalised(const Tensor& a, bool vectors) {
  const Tensor rows = checked_copy(a, "eigh");
  const Tensor ascending = empty_f64({a.dim(0), a.dim(1), 1}, a);
  if (!succeeded(diagonalise(rows, ascending, vectors), "eigh", a)) return std::nullopt;
  const Tensor values = reversed_rows(ascending).reshape({a.dim(0), a.dim(1)}).to(a.dtype());
  if (!vectors) return Eigh{values, {}};
  const Tensor columns = transposed(reversed_rows(rows));
  return Eigh{values, with_signs(columns, column_signs(columns)).to(a.dtype())};
}

// Matrix i of a [batch, m, n], on the CPU.
Tensor matrix_on_cpu(const Tensor& a, std::int64_t i) {
  return a.slice(0, i, i + 1).reshape({a.dim(1), a.dim(2)}).to(Device::cpu());
}

// Stacks part(i) of every i in the batch into one tensor on the device of `beside`.
Tensor stacked(std::int64_t batch, const Shape& shape, const Tensor& beside, const std::function<Tensor(std::int64_t)>& part) {
  const Tensor flat = Tensor::empty({batch, shape.erase(0).numel()}, beside.dtype());
  for (std::int64_t i = 0; i < batch; ++i) flat.slice(0, i, i + 1).copy_from(part(i).reshape({1, flat.dim(1)}));
  return flat.reshape(shape).to(beside.device());
}

}  // namespace

Svd svd_of(const Tensor& a) {
  const std::int64_t m = a.dim(0);
  const std::int64_t n = a.dim(1);
  const std::int64_t k = std::min(m, n);
  if (k == 0) return {empty_f64({m, 0}, a).to(a.dtype()), empty_f64({0}, a).to(a.dtype()), empty_f64({n, 0}, a).to(a.dtype())};
  const Tensor copy = checked_copy(a, "svd");
  const Tensor w = m > n ? transposed(copy) : copy;
  const Tensor left = empty_f64({k, w.dim(1)}, a);
  const Tensor s = empty_f64({k}, a);
  const Tensor right = empty_f64({k, k}, a);
  if (!succeeded(factorise(w, left, s, right), "svd", a)) {
    const Svd on_cpu = linalg::svd(a.to(Device::cpu()));
    return {on_cpu.u.to(a.device()), on_cpu.s.to(a.device()), on_cpu.v.to(a.device())};
  }
  return m > n ? oriented(transposed(left), s, right, a.dtype()) : oriented(right, s, transposed(left), a.dtype());
}

Svd svd_batch(const Tensor& a) {
  TESSERA_CHECK(a.rank() == 3 && a.numel() > 0 && std::max(a.dim(1), a.dim(2)) <= kMostBatchedSvd, ShapeError, "svd_batch: a is ",
                a.shape(), "; must be [batch, m, n] with m and n from 1 to ", kMostBatchedSvd);
  const std::int64_t batch = a.dim(0);
  const std::int64_t m = a.dim(1);
  const std::int64_t n = a.dim(2);
  const std::int64_t k = std::min(m, n);
  const Tensor w = checked_copy(a, "svd");
  const Tensor right = empty_f64({batch, n, n}, a);
  const Tensor s = empty_f64({batch, k}, a);
  const Tensor left = empty_f64({batch, m, m}, a);
  if (succeeded(factorise_batch(w, right, s, left), "svd", a)) {
    return oriented(transposed(left.slice(1, 0, k)), s, transposed(right.slice(1, 0, k)), a.dtype());
  }
  std::vector<Svd> all;
  for (std::int64_t i = 0; i < batch; ++i) all.push_back(linalg::svd(matrix_on_cpu(a, i)));
  const auto at = [&](std::int64_t i) -> const Svd& { return all[static_cast<std::size_t>(i)]; };
  return {stacked(batch, {batch, m, k}, a, [&](std::int64_t i) { return at(i).u; }),
          stacked(batch, {batch, k}, a, [&](std::int64_t i) { return at(i).s; }),
          stacked(batch, {batch, n, k}, a, [&](std::int64_t i) { return at(i).v; })};
}

Qr qr_of(const Tensor& a) {
  const std::int64_t m = a.dim(0);
  const std::int64_t n = a.dim(1);
  const std::int64_t k = std::min(m, n);
  if (k == 0) return {empty_f64({m, 0}, a).to(a.dtype()), empty_f64({0, n}, a).to(a.dtype())};
  const Tensor columns = transposed(checked_copy(a, "qr"));
  const Tensor scales = empty_f64({k}, a);
  bool good = succeeded(reflect(columns, scales), "qr", a);
  const Tensor r = upper_triangle(columns, k);
  good = good && succeeded(expand_reflections(columns.slice(0, 0, k), scales), "qr", a);
  if (!good) {
    const Qr on_cpu = linalg::qr(a.to(Device::cpu()));
    return {on_cpu.q.to(a.device()), on_cpu.r.to(a.device())};
  }
  const Tensor signs = diagonal_signs(r);
  const Tensor oriented_r = Tensor::empty_like(r);
  mul(r, signs.reshape({k, 1}), oriented_r);
  return {with_signs(transposed(columns.slice(0, 0, k)), signs).to(a.dtype()), oriented_r.to(a.dtype())};
}

Eigh eigh_of(const Tensor& a, bool vectors) {
  const std::int64_t n = a.dim(0);
  if (n == 0) return {empty_f64({0}, a).to(a.dtype()), empty_f64({0, 0}, a).to(a.dtype())};
  if (const auto all = diagonalised(a.reshape({1, n, n}), vectors)) {
    return {all->values.reshape({n}), vectors ? all->vectors.reshape({n, n}) : Tensor()};
  }
  if (!vectors) return {linalg::eigvalsh(a.to(Device::cpu())).to(a.device()), {}};
  const Eigh on_cpu = linalg::eigh(a.to(Device::cpu()));
  return {on_cpu.values.to(a.device()), on_cpu.vectors.to(a.device())};
}

Eigh eigh_batch(const Tensor& a) {
  TESSERA_CHECK(a.rank() == 3 && a.numel() > 0 && a.dim(1) == a.dim(2), ShapeError, "eigh_batch: a is ", a.shape(),
                "; must be [batch, n, n], not empty");
  if (const auto all = diagonalised(a, true)) return *all;
  const std::int64_t batch = a.dim(0);
  const std::int64_t n = a.dim(1);
  std::vector<Eigh> all;
  for (std::int64_t i = 0; i < batch; ++i) all.push_back(linalg::eigh(matrix_on_cpu(a, i)));
  const auto at = [&](std::int64_t i) -> const Eigh& { return all[static_cast<std::size_t>(i)]; };
  return {stacked(batch, {batch, n}, a, [&](std::int64_t i) { return at(i).values; }),
          stacked(batch, {batch, n, n}, a, [&](std::int64_t i) { return at(i).vectors; })};
}

}  // namespace tessera::cuda
