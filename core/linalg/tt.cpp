#include "core/linalg/tt.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/linalg/products.h"
#include "core/linalg/qr.h"
#include "core/linalg/svd.h"
#include "core/linalg/tucker.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

void check_tensor(const Tensor& tensor) {
  TESSERA_CHECK(tensor.rank() >= 2 && tensor.numel() > 0, ShapeError, "tt_svd: tensor is ", tensor.shape(),
                "; needs two modes or more and must not be empty");
}

// The first `rank` rows of diag(s) v'.
Tensor scaled_rows(const Tensor& v, const Tensor& s, std::int64_t rank) {
  const Tensor rows = v.slice(1, 0, rank).permute({1, 0}).clone();
  double* const data = rows.data<double>();
  for (std::int64_t i = 0; i < rows.numel(); ++i) data[i] *= s.data<double>()[i / rows.dim(1)];
  return rows;
}

// Rescales the cores to equal norms; the tensor stays the same.
void share_scale(std::vector<Tensor>& cores) {
  double log_sum = 0;
  for (const Tensor& core : cores) log_sum += std::log(norm_f64(core));
  const double shared = std::exp(log_sum / static_cast<double>(cores.size()));  // 0 if one of the norms is 0
  for (Tensor& core : cores) {
    const double norm = norm_f64(core);
    const double factor = norm > 0 && shared > 0 ? shared / norm : 0.0;
    for (std::int64_t i = 0; i < core.numel(); ++i) core.data<double>()[i] *= factor;
  }
}

// Returns the rank at which to cut the k-th unfolding, given its singular values `s` on the host.
using RankOf = std::function<std::int64_t(int k, const Tensor& s)>;

// Keeps the fewest values, at least one, such that the squares of the rest sum to at most error^2 norm^2 / cuts.
RankOf ranks_within(double error, double norm, std::size_t cuts) {
  const double allowed = error * error * norm * norm / static_cast<double>(cuts);
  return [allowed](int, const Tensor& s) {
    double tail = 0;
    std::int64_t rank = s.numel();
    while (rank > 1 && tail + s.data<double>()[rank - 1] * s.data<double>()[rank - 1] <= allowed) {
      --rank;
      tail += s.data<double>()[rank] * s.data<double>()[rank];
    }
    return rank;
  };
}

void check_error(double error, const char* operation) {
  TESSERA_CHECK(error >= 0 && error < 1, ShapeError, operation, ": error is ", error, "; must be in [0, 1)");
}

TensorTrain decompose(const Tensor& tensor, const RankOf& rank_of) {
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

void check_train(const TensorTrain& train) {
  TESSERA_CHECK(!train.cores.empty(), ShapeError, "tt_round: the train has no cores");
  std::int64_t left = 1;
  for (std::size_t k = 0; k < train.cores.size(); ++k) {
    const Tensor& core = train.cores[k];
    const bool last = k + 1 == train.cores.size();
    TESSERA_CHECK(core.rank() == 3 && core.numel() > 0 && core.dim(0) == left && (!last || core.dim(2) == 1), ShapeError,
                  "tt_round: core ", k + 1, " of ", train.cores.size(), " is ", core.shape(), "; needs [", left, ", n, ",
                  last ? "1]" : "r]", ", not empty");
    left = core.dim(2);
  }
}

Tensor rows_by_rest(const Tensor& core) { return core.reshape({core.dim(0), core.dim(1) * core.dim(2)}); }

// The same tensor with cores on the host, in double. All cores but the first have orthonormal rows [r_(k-1), n_k r_k].
std::vector<Tensor> right_orthogonal(const TensorTrain& train) {
  std::vector<Tensor> cores;
  for (const Tensor& core : train.cores) cores.push_back(core.to(Device::cpu()).to(DType::f64).contiguous());
  for (std::size_t k = cores.size() - 1; k > 0; --k) {
    const Qr factors = qr(rows_by_rest(cores[k]).permute({1, 0}));
    const Tensor& before = cores[k - 1];
    const std::int64_t rank = factors.q.dim(1), rows = before.dim(0) * before.dim(1);
    cores[k] = factors.q.permute({1, 0}).clone().reshape({rank, cores[k].dim(1), cores[k].dim(2)});
    cores[k - 1] = multiply_f64(before.reshape({rows, before.dim(2)}), factors.r.permute({1, 0}))
                       .reshape({before.dim(0), before.dim(1), rank});
  }
  return cores;
}

// Cuts each unfolding in turn, from the left. The cores on the right are orthogonal from the start, those on the left once they
// are cut, so the unfolding has the singular values of the core between them.
TensorTrain truncate(const TensorTrain& train, std::vector<Tensor> cores, const RankOf& rank_of) {
  for (std::size_t k = 0; k + 1 < cores.size(); ++k) {
    const std::int64_t left = cores[k].dim(0), size = cores[k].dim(1);
    const Svd cut = svd(cores[k].reshape({left * size, cores[k].dim(2)}));
    const std::int64_t rank = rank_of(static_cast<int>(k), cut.s);
    const Tensor& next = cores[k + 1];
    cores[k] = cut.u.slice(1, 0, rank).clone().reshape({left, size, rank});
    cores[k + 1] = multiply_f64(scaled_rows(cut.v, cut.s, rank), rows_by_rest(next)).reshape({rank, next.dim(1), next.dim(2)});
  }
  share_scale(cores);
  for (Tensor& core : cores) core = core.to(train.cores.front().dtype());
  return {std::move(cores)};
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
  check_error(error, "tt_svd");
  return decompose(tensor, ranks_within(error, norm_f64(tensor.to(DType::f64)), static_cast<std::size_t>(tensor.rank() - 1)));
}

TensorTrain tt_round(const TensorTrain& train, std::span<const std::int64_t> ranks) {
  check_train(train);
  TESSERA_CHECK(ranks.size() + 1 == train.cores.size(), ShapeError, "tt_round: ", ranks.size(), " ranks for a train of ",
                train.cores.size(), " cores; needs ", train.cores.size() - 1);
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    TESSERA_CHECK(ranks[k] >= 1, ShapeError, "tt_round: rank ", k + 1, " is ", ranks[k], "; needs at least 1");
  }
  return truncate(train, right_orthogonal(train),
                  [&](int k, const Tensor& s) { return std::min(ranks[static_cast<std::size_t>(k)], s.numel()); });
}

TensorTrain tt_round(const TensorTrain& train, double error) {
  check_train(train);
  check_error(error, "tt_round");
  std::vector<Tensor> cores = right_orthogonal(train);
  const double norm = norm_f64(cores.front());  // norm of the whole tensor: the other cores have orthonormal rows
  return truncate(train, std::move(cores), ranks_within(error, norm, std::max<std::size_t>(1, train.cores.size() - 1)));
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
