#include "core/ops/batch_norm.h"

#include <algorithm>

#include "core/device/dispatch.h"
#include "core/ops/dense_operands.h"

namespace tessera {
namespace {

// What the forward keeps for the backward.
struct BatchNormSaved {
  Tensor x, gamma, mean, inv_std;
  BatchNormRelu relu;
  bool training;
  bool residual;
  Communicator* ranks;
};

// Replaces each of the two tensors [c] by its mean over the ranks.
void average(Communicator& ranks, const Tensor& first, const Tensor& second) {
  const std::int64_t channels = first.numel();
  const Tensor both = Tensor::empty({2 * channels}, DType::f64);
  both.slice(0, 0, channels).copy_from(first.to(DType::f64));
  both.slice(0, channels, 2 * channels).copy_from(second.to(DType::f64));
  ranks.all_reduce(both);
  for (std::int64_t i = 0; i < 2 * channels; ++i) both.data<double>()[i] /= ranks.size();
  first.copy_from(both.slice(0, 0, channels).to(first.dtype()));
  second.copy_from(both.slice(0, channels, 2 * channels).to(second.dtype()));
}

// Statistics over all ranks: var is the mean square less the square of the mean, in f64, where squares of f32 are exact.
void share_statistics(Communicator& ranks, const Tensor& mean, const Tensor& var) {
  const Tensor first = mean.to(DType::f64).clone(), square = var.to(DType::f64).clone();
  double* const means = first.data<double>();
  double* const squares = square.data<double>();
  for (std::int64_t c = 0; c < first.numel(); ++c) squares[c] += means[c] * means[c];
  average(ranks, first, square);
  for (std::int64_t c = 0; c < first.numel(); ++c) squares[c] = std::max(0.0, squares[c] - means[c] * means[c]);
  mean.copy_from(first.to(mean.dtype()));
  var.copy_from(square.to(var.dtype()));
}

class BatchNormOp final : public Op {
 public:
  explicit BatchNormOp(BatchNormSaved saved) : saved_(std::move(saved)) {}
  std::string_view name() const override { return "batch_norm"; }
  bool writes_over_grad() const override { return true; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    const auto& [saved_x, gamma, mean, inv_std, saved_relu, training, residual, ranks] = saved_;
    // grad_y was read and is in the cache. A fresh tensor would have to be loaded into it before it can be written.
    const bool may_overwrite = grad_y.sole_owner();
    const auto over_grad_y = [&] { return may_overwrite ? grad_y : Tensor::empty_like(grad_y); };
    const Tensor x = as_rows(saved_x);
    BatchNormRelu relu = saved_relu;
    Tensor g = as_rows(grad_y);
    Grads grads(residual ? 4 : 3);
    const bool residual_needed = residual && needs[3];
    if (residual_needed) grads[3] = relu.y.defined() ? over_grad_y() : grad_y;
    const Tensor masked = residual_needed && relu.y.defined() ? as_rows(grads[3]) : Tensor();
    if (training || needs[1] || needs[2] || masked.defined()) {
      grads[1] = Tensor::empty_like(gamma);
      grads[2] = Tensor::empty_like(gamma);
      TESSERA_DISPATCH(x.device(), batch_norm_backward_parameters, x, g, relu, mean, inv_std, gamma, grads[1], grads[2], masked);
    }
    if (masked.defined()) {
      g = masked;
      relu = {};
    }
    if (needs[0]) {
      grads[0] = residual_needed ? Tensor::empty_like(saved_x) : over_grad_y();
      Tensor sum_h = grads[1], sum = grads[2];
      if (ranks != nullptr) {  // the kernel divides the mean of the ranks' sums by this rank's rows
        sum_h = sum_h.clone();
        sum = sum.clone();
        average(*ranks, sum_h, sum);
      }
      TESSERA_DISPATCH(x.device(), batch_norm_backward_input, x, g, relu, mean, inv_std, gamma, sum_h, sum, training,
                       as_rows(grads[0]));
    }
    return grads;
  }

 private:
  BatchNormSaved saved_;
};

void check(const Tensor& x, std::initializer_list<NamedOperand> per_channel) {
  TESSERA_CHECK(x.rank() >= 1, ShapeError, "batch_norm: x is a scalar; needs at least 1 dimension");
  for (const NamedOperand& operand : per_channel) {
    TESSERA_CHECK(operand.value.shape() == Shape{x.dim(-1)}, ShapeError, "batch_norm: ", operand.name, " does not fit: x is ",
                  x.shape(), ", ", operand.name, " is ", operand.value.shape(), "; ", operand.name, " must be [x.dim(-1)]");
    check_parameters("batch_norm", {"x", x}, {operand});
  }
}

void check_residual(const Var& x, const Var& residual) {
  if (!residual.defined()) return;
  check_operands("batch_norm", {{"x", x.value()}, {"residual", residual.value()}});
  TESSERA_CHECK(residual.shape() == x.shape(), ShapeError, "batch_norm: residual does not fit: x is ", x.shape(),
                ", residual is ", residual.shape(), "; the shapes must be equal");
}

}  // namespace

Var batch_norm(const Var& x, const Var& gamma, const Var& beta, const Tensor& running_mean, const Tensor& running_var,
               const BatchNormOptions& options, const Var& residual) {
  check(x.value(),
        {{"gamma", gamma.value()}, {"beta", beta.value()}, {"running_mean", running_mean}, {"running_var", running_var}});
  TESSERA_CHECK(running_mean.is_contiguous() && running_var.is_contiguous(), ShapeError,
                "batch_norm: running statistics are updated in place; running_mean and running_var must be contiguous");
  check_residual(x, residual);
  const Tensor input = x.value().contiguous();
  const Tensor scale = gamma.value().contiguous();
  const Tensor shift = beta.value().contiguous();
  const Tensor rows = as_rows(input);
  const Device device = input.device();
  Communicator* const ranks = options.training && options.ranks != nullptr && options.ranks->size() > 1 ? options.ranks : nullptr;
  Tensor mean = running_mean.clone();
  Tensor var = running_var;
  if (options.training && rows.dim(0) > 0) {
    mean = Tensor::empty_like(running_mean);
    var = Tensor::empty_like(running_var);
    TESSERA_DISPATCH(device, batch_norm_statistics, rows, mean, var);
    if (ranks != nullptr) share_statistics(*ranks, mean, var);
    const std::int64_t all_rows = rows.dim(0) * (ranks != nullptr ? ranks->size() : 1);
    TESSERA_DISPATCH(device, batch_norm_update, mean, var, running_mean, running_var, all_rows, options.momentum);
  }
  const Tensor inv_std = Tensor::empty_like(var);
  TESSERA_DISPATCH(device, batch_norm_inv_std, var, inv_std, options.eps);
  Tensor y = Tensor::empty_like(input);
  const Tensor added = residual.defined() ? as_rows(residual.value().contiguous()) : Tensor();
  TESSERA_DISPATCH(device, batch_norm_forward, rows, mean, inv_std, scale, shift, added, options.relu, as_rows(y));
  BatchNormRelu relu;
  if (options.relu && residual.defined()) relu.y = as_rows(y);
  if (options.relu && !residual.defined()) relu.beta = shift;
  auto op = std::make_unique<BatchNormOp>(BatchNormSaved{.x = input,
                                                         .gamma = scale,
                                                         .mean = mean,
                                                         .inv_std = inv_std,
                                                         .relu = std::move(relu),
                                                         .training = options.training,
                                                         .residual = residual.defined(),
                                                         .ranks = ranks});
  if (!residual.defined()) return record(std::move(op), {x, gamma, beta}, std::move(y));
  return record(std::move(op), {x, gamma, beta, residual}, std::move(y));
}

}  // namespace tessera
