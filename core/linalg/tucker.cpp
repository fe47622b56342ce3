#include "core/linalg/tucker.h"

#include <algorithm>
#include <cmath>

#include "core/linalg/eigh.h"
#include "core/linalg/mode_product.h"
#include "core/linalg/products.h"
#include "core/linalg/qr.h"
#include "core/linalg/svd.h"
#include "core/linalg/unfold.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

using Ranks = std::span<const std::int64_t>;

std::vector<int> check_modes(const Tensor& tensor, std::span<const int> modes, Ranks ranks, const char* operation) {
  TESSERA_CHECK(tensor.numel() > 0, ShapeError, operation, ": tensor is ", tensor.shape(), "; must not be empty");
  TESSERA_CHECK(modes.size() == ranks.size(), ShapeError, operation, ": ", modes.size(), " modes and ", ranks.size(),
                " ranks; needs one rank for each mode");
  std::vector<int> checked;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const int mode = normalize_axis(modes[i], tensor.rank(), operation);
    TESSERA_CHECK(std::find(checked.begin(), checked.end(), mode) == checked.end(), ShapeError, operation, ": mode ", mode,
                  " is given twice; modes must differ");
    TESSERA_CHECK(ranks[i] >= 1 && ranks[i] <= tensor.dim(mode), ShapeError, operation, ": rank ", ranks[i], " for mode ", mode,
                  " of size ", tensor.dim(mode), "; legal range is 1..", tensor.dim(mode));
    checked.push_back(mode);
  }
  return checked;
}

// Orthonormal columns [n, rank] that begin with those of `vectors` [n, fewer].
Tensor completed(const Tensor& vectors, std::int64_t rank) {
  const std::int64_t known = vectors.dim(1);
  const Tensor columns = Tensor::empty({vectors.dim(0), rank}, DType::f64);
  fill_normal(columns, RngStream(0, "tucker", "complement"), 0, 1);
  columns.slice(1, 0, known).copy_from(vectors.to(Device::cpu()));
  return qr(columns.to(vectors.device())).q;
}

// The first `rank` left singular vectors [n, rank] of an f64 unfolding [n, rest]. The Gram matrix [n, n] is the smaller
// problem when the unfolding is wide. A tall one has only `rest` vectors; columns orthogonal to these multiply nothing but zeros.
Tensor leading_vectors(const Tensor& unfolded, std::int64_t rank) {
  const bool tall = unfolded.dim(0) > unfolded.dim(1);
  const Tensor vectors = tall ? svd(unfolded).u : eigh(gram_f64(unfolded)).vectors;
  return rank > vectors.dim(1) ? completed(vectors, rank) : vectors.slice(1, 0, rank).contiguous();
}

Tensor project(const Tensor& tensor, const Tensor& factor, int mode) {
  return mode_product(tensor, factor.permute({1, 0}), mode);
}

Tucker st_hosvd_f64(const Tensor& tensor, const std::vector<int>& modes, Ranks ranks) {
  Tucker tucker{tensor, {}, modes};
  for (std::size_t i = 0; i < modes.size(); ++i) {
    tucker.factors.push_back(leading_vectors(unfold(tucker.core, modes[i]), ranks[i]));
    tucker.core = project(tucker.core, tucker.factors[i], modes[i]);
  }
  return tucker;
}

// One sweep: makes each factor in turn optimal for the current other factors.
void sweep(const Tensor& tensor, Ranks ranks, Tucker& tucker) {
  for (std::size_t i = 0; i < tucker.modes.size(); ++i) {
    Tensor partial = tensor;
    for (std::size_t j = 0; j < tucker.modes.size(); ++j) {
      if (j != i) partial = project(partial, tucker.factors[j], tucker.modes[j]);
    }
    tucker.factors[i] = leading_vectors(unfold(partial, tucker.modes[i]), ranks[i]);
    tucker.core = project(partial, tucker.factors[i], tucker.modes[i]);
  }
}

Tucker convert(Tucker tucker, DType dtype) {
  tucker.core = tucker.core.to(dtype);
  for (Tensor& factor : tucker.factors) factor = factor.to(dtype);
  return tucker;
}

}  // namespace

Tucker st_hosvd(const Tensor& tensor, std::span<const int> modes, Ranks ranks) {
  const std::vector<int> checked = check_modes(tensor, modes, ranks, "st_hosvd");
  return convert(st_hosvd_f64(tensor.to(DType::f64), checked, ranks), tensor.dtype());
}

Tucker hooi(const Tensor& tensor, std::span<const int> modes, Ranks ranks, const HooiOptions& options) {
  const std::vector<int> checked = check_modes(tensor, modes, ranks, "hooi");
  const Tensor wide = tensor.to(DType::f64);
  const double total = norm_f64(wide);
  Tucker best = st_hosvd_f64(wide, checked, ranks);
  // With one mode the start is already the best; a zero tensor has no error to lower.
  const std::int64_t sweeps = checked.size() > 1 && total > 0 ? options.max_iterations : 0;
  const auto error = [total](const Tucker& tucker) {
    const double kept = norm_f64(tucker.core) / total;
    return std::sqrt(std::max(0.0, 1.0 - kept * kept));
  };
  double lowest = error(best);
  for (std::int64_t i = 0; i < sweeps; ++i) {
    Tucker next = best;
    sweep(wide, ranks, next);
    const double reached = error(next);
    const double gain = lowest - reached;
    if (gain <= 0) break;  // rounding: the iteration itself never raises the error
    best = std::move(next);
    lowest = reached;
    if (gain < options.tolerance) break;
  }
  return convert(std::move(best), tensor.dtype());
}

Tensor reconstruct(const Tucker& tucker) {
  Tensor tensor = tucker.core.to(DType::f64);
  for (std::size_t i = 0; i < tucker.modes.size(); ++i) tensor = mode_product(tensor, tucker.factors[i], tucker.modes[i]);
  return tensor.to(tucker.core.dtype());
}

std::vector<double> mode_spectrum(const Tensor& tensor, int mode) {
  const Tensor unfolded = unfold(tensor, normalize_axis(mode, tensor.rank(), "mode_spectrum"));
  std::vector<double> values;
  if (unfolded.dim(0) > unfolded.dim(1)) {
    values = svd(unfolded.to(DType::f64)).s.to_vector<double>();
    values.resize(static_cast<std::size_t>(unfolded.dim(0)), 0.0);
    return values;
  }
  values = eigvalsh(gram_f64(unfolded)).to_vector<double>();
  for (double& value : values) value = std::sqrt(std::max(0.0, value));
  return values;
}

}  // namespace tessera::linalg
