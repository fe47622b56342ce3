#include "core/linalg/tt.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/linalg/products.h"
#include "core/linalg/svd.h"
#include "core/linalg/tucker.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

void check_tensor(const Tensor& tensor) {
  TESSERA_CHECK(tensor.rank() >= 2 && tensor.numel() > 0, ShapeError, "tt_svd: tensor is ", tensor.shape(),
                "; needs two modes or more and must not be empty");
}

// diag(s) v', the first `rank` rows.
Tensor scaled_rows(const Tensor& v, const Tensor& s, std::int64_t rank) {
  const Tensor rows = v.slice(1, 0, rank).permute({1, 0}).clone();
  double* const data = rows.data<double>();
  for (std::int64_t i = 0; i < rows.numel(); ++i) data[i] *= s.data<double>()[i / rows.dim(1)];
  return rows;
}

// The same tensor with cores of equal norms.
void share_scale(std::vector<Tensor>& cores) {
  double log_sum = 0;
  for (const Tensor& core : cores) log_sum += std::log(norm_f64(core));
  const double shared = std::exp(log_sum / static_cast<double>(cores.size()));  // 0 where one of them is
  for (Tensor& core : cores) {
    const double norm = norm_f64(core);
    const double factor = norm > 0 && shared > 0 ? shared / norm : 0.0;
    for (std::int64_t i = 0; i < core.numel(); ++i) core.data<double>()[i] *= factor;
  }
}

// `rank_of(k, singular values)` says where the k-th unfolding is cut.
TensorTrain decompose(const Tensor& tensor, const std::function<std::int64_t(int, const Tensor&)>& rank_of) {
  TensorTrain train;
  Tensor rest = tensor.to(DType::f64);
  std::int64_t left = 1;
  for (int k = 0; k + 1 < tensor.rank(); ++k) {
    const std::int64_t rows = left * tensor.dim(k);
    const Svd cut = svd(rest.reshape({rows, rest.numel() / rows}));
    const Tensor s = cut.s.to(Device::cpu());
    const std::int64_t rank = rank_of(k, s);
    train.cores.push_back(cut.u.to(Device::cpu()).slice(1, 0, rank).clone().reshape({left, tensor.dim(k), rank}));
    rest = scaled_rows(cut.v.to(Device::cpu()), s, rank).to(tensor.device());
    left = rank;
  }
  train.cores.push_back(rest.to(Device::cpu()).reshape({left, tensor.dim(-1), 1}).clone());
  share_scale(train.cores);
  for (Tensor& core : train.cores) core = core.to(tensor.dtype());
  return train;
}

}  // namespace

TensorTrain tt_svd(const Tensor& tensor, std::span<const std::int64_t> ranks) {
  check_tensor(tensor);
  TESSERA_CHECK(std::ssize(ranks) == tensor.rank() - 1, ShapeError, "tt_svd: ", ranks.size(), " ranks for a tensor ",
                tensor.shape(), "; needs ", tensor.rank() - 1);
  return decompose(tensor, [&](int k, const Tensor& s) {
    const std::int64_t rank = ranks[static_cast<std::size_t>(k)];
    TESSERA_CHECK(rank >= 1 && rank <= s.numel(), ShapeError, "tt_svd: rank ", k + 1, " is ", rank, "; legal range is 1..",
                  s.numel());
    return rank;
  });
}

TensorTrain tt_svd(const Tensor& tensor, double error) {
  check_tensor(tensor);
  TESSERA_CHECK(error >= 0 && error < 1, ShapeError, "tt_svd: error is ", error, "; must be in [0, 1)");
  const double norm = norm_f64(tensor.to(DType::f64));
  const double allowed = error * error * norm * norm / static_cast<double>(tensor.rank() - 1);
  return decompose(tensor, [&](int, const Tensor& s) {
    double tail = 0;
    std::int64_t rank = s.numel();
    while (rank > 1 && tail + s.data<double>()[rank - 1] * s.data<double>()[rank - 1] <= allowed) {
      --rank;
      tail += s.data<double>()[rank] * s.data<double>()[rank];
    }
    return rank;
  });
}

Tensor reconstruct(const TensorTrain& train) {
  std::vector<std::int64_t> sizes;
  Tensor product;
  for (const Tensor& core : train.cores) {
    sizes.push_back(core.dim(1));
    const Tensor matrix = core.contiguous().reshape({core.dim(0), core.dim(1) * core.dim(2)});
    product = product.defined() ? multiply_f64(product, matrix) : matrix.to(DType::f64);
    product = product.reshape({product.numel() / core.dim(2), core.dim(2)});
  }
  return product.reshape(Shape(std::span<const std::int64_t>(sizes))).to(train.cores.front().dtype());
}

std::vector<std::vector<double>> tt_spectra(const Tensor& tensor) {
  check_tensor(tensor);
  std::vector<std::vector<double>> spectra;
  const Tensor values = tensor.contiguous();
  std::int64_t rows = 1;
  for (int k = 0; k + 1 < tensor.rank(); ++k) {
    rows *= tensor.dim(k);
    const Tensor matrix = values.reshape({rows, values.numel() / rows});
    spectra.push_back(mode_spectrum(matrix, matrix.dim(0) <= matrix.dim(1) ? 0 : 1));
  }
  return spectra;
}

}  // namespace tessera::linalg
