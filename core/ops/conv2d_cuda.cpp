#include <map>

#include "core/cuda/libraries/epilogue.h"
#include "core/cuda/libraries/product_weights.h"
#include "core/device/decisions.h"
#include "core/device/plan_cache.h"
#include "core/device/precision.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv2d_naive_cuda.h"
#include "core/ops/conv2d_plan_cuda.h"
#include "core/ops/linear.h"

namespace tessera::cuda {
namespace {

using Method = Conv2dPlan::Method;

thread_local std::map<std::string, std::size_t> runs;

Tensor as_pixels(const Tensor& x) { return x.reshape({x.dim(0) * x.dim(1) * x.dim(2), x.dim(3)}); }
Tensor as_matrix(const Tensor& weight) { return weight.reshape({weight.dim(0), weight.dim(3)}); }

Tensor with_channels(const Tensor& x, std::int64_t channels) {
  Shape shape = x.shape();
  shape.set(3, channels);
  return Tensor::empty(shape, x.dtype(), x.device());
}

// Runs the plan of the pass. A new plan is chosen first.
void run_planned(Conv2dPass pass, const Conv2dGeometry& g, const Tensor& images, const ConvEpilogue& epilogue,
                 const std::function<bool(const Conv2dPlan&)>& run) {
  thread_local PlanCache<Conv2dPlan> cache;
  const auto& [stride, padding, dilation, groups] = g.options;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const Device device = images.device();
  const DType dtype = images.dtype();
  const auto plan = cache.get({number(pass),
                               number(dtype),
                               tf32_products(),
                               library_convolutions(),
                               epilogue.bias,
                               epilogue.relu,
                               epilogue.residual,
                               device.index(),
                               number(decision_epoch()),
                               g.n,
                               g.h,
                               g.w,
                               g.in,
                               g.out,
                               g.kh,
                               g.kw,
                               groups,
                               stride.h,
                               stride.w,
                               padding.h,
                               padding.w,
                               dilation.h,
                               dilation.w},
                              [&] { return choose_conv2d_plan(pass, g, dtype, epilogue, device, run); });
  ++runs[plan->algorithm];
  TESSERA_CHECK(run(*plan), DeviceError, "conv2d: ", plan->algorithm, " ran before and is refused now: ", describe(g));
}

// Operands of a forward pass. With half images, the weight and bias may be f32.
struct Forward {
  const Tensor& x;
  const Tensor& weight;
  const Tensor& bias;
  const Tensor& residual;
  const Tensor& y;
  bool relu;
};

bool forward_by_library(const Conv2dPlan& plan, const Forward& f) {
  const Tensor x = padded_channels(f.x, plan.in);
  const Tensor weight = padded_weight(f.weight, plan.out, f.x.dim(3) == plan.in ? f.weight.dim(3) : plan.in, f.x.dtype());
  if (plan.out == f.y.dim(3)) return plan.library->try_run({x, weight, f.y, f.bias, f.residual});
  const Tensor wide = with_channels(f.y, plan.out);
  if (!plan.library->try_run({x, weight, wide})) return false;
  f.y.copy_from(wide.slice(3, 0, f.y.dim(3)));
  finish_product(f.y, f.bias, f.residual, f.relu);
  return true;
}

bool run_forward(const Conv2dPlan& plan, const Conv2dGeometry& g, const Forward& f) {
  switch (plan.method) {
    case Method::library: return forward_by_library(plan, f);
    case Method::gemm:
      linear_forward(as_pixels(f.x), as_matrix(rounded_weight(f.weight, f.x.dtype())), f.bias, as_pixels(f.y),
                     f.relu && !f.residual.defined());
      if (f.residual.defined()) finish_product(f.y, {}, f.residual, f.relu);
      return true;
    case Method::own:
      run_core_conv(*plan.own, f.x, f.weight, f.bias, f.y);
      finish_product(f.y, {}, f.residual, f.relu);
      return true;
    case Method::naive:
      conv2d_naive(Conv2dPass::forward, g, f.x, rounded_weight(f.weight, f.x.dtype()), f.y);
      finish_product(f.y, f.bias, f.residual, f.relu);
      return true;
  }
  return false;
}

void forward(const Forward& f, const Conv2dOptions& options) {
  if (f.y.numel() == 0) return;
  const Conv2dGeometry g = geometry_of(f.x, f.weight, f.y, options);
  run_planned(Conv2dPass::forward, g, f.x, {f.bias.defined(), f.relu, f.residual.defined()},
              [&](const Conv2dPlan& plan) { return run_forward(plan, g, f); });
}

bool backward_input_by_library(const Conv2dPlan& plan, const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x) {
  const std::int64_t channels = grad_x.dim(3);
  const Tensor padded = padded_channels(grad_y, plan.out);
  const Tensor filters = padded_weight(weight, plan.out, channels == plan.in ? weight.dim(3) : plan.in, grad_y.dtype());
  if (channels == plan.in) return plan.library->try_run({padded, filters, grad_x});
  const Tensor wide = with_channels(grad_x, plan.in);
  if (!plan.library->try_run({padded, filters, wide})) return false;
  grad_x.copy_from(wide.slice(3, 0, channels));
  return true;
}

bool backward_weight_by_library(const Conv2dPlan& plan, const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight) {
  const Tensor images = padded_channels(x, plan.in);
  const Tensor gradients = padded_channels(grad_y, plan.out);
  if (x.dim(3) == plan.in && grad_y.dim(3) == plan.out) return plan.library->try_run({images, gradients, grad_weight});
  const auto& shape = grad_weight.shape();
  const Tensor wide = Tensor::empty({plan.out, shape[1], shape[2], plan.in}, grad_weight.dtype(), grad_weight.device());
  if (!plan.library->try_run({images, gradients, wide})) return false;
  grad_weight.copy_from(wide.slice(0, 0, shape[0]).slice(3, 0, shape[3]));
  return true;
}

}  // namespace

std::size_t conv2d_runs(const std::string& algorithm) { return runs[algorithm]; }

void conv2d_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Conv2dOptions& options) {
  forward({x, weight, bias, {}, y, false}, options);
}

void conv2d_relu_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual, const Tensor& y,
                         const Conv2dOptions& options) {
  forward({x, weight, bias, residual, y, true}, options);
}

void conv2d_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x, const Conv2dOptions& options) {
  if (grad_x.numel() == 0) return;
  const Conv2dGeometry g = geometry_of(grad_x, weight, grad_y, options);
  run_planned(Conv2dPass::backward_input, g, grad_x, {}, [&](const Conv2dPlan& plan) {
    if (plan.method == Method::library) return backward_input_by_library(plan, grad_y, weight, grad_x);
    const Tensor filters = rounded_weight(weight, grad_y.dtype());
    if (plan.method == Method::gemm) {
      linear_backward_input(as_pixels(grad_y), as_matrix(filters), as_pixels(grad_x));
    } else if (plan.method == Method::own) {
      run_core_conv(*plan.own, grad_y, filters, {}, grad_x);
    } else {
      conv2d_naive(Conv2dPass::backward_input, g, grad_y, filters, grad_x);
    }
    return true;
  });
}

void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias,
                            const Conv2dOptions& options) {
  if (grad_bias.defined()) column_sums(as_pixels(grad_y), grad_bias);
  if (x.numel() == 0) return grad_weight.fill(0);
  const Conv2dGeometry g = geometry_of(x, grad_weight, grad_y, options);
  run_planned(Conv2dPass::backward_weight, g, x, {}, [&](const Conv2dPlan& plan) {
    if (plan.method == Method::library) return backward_weight_by_library(plan, x, grad_y, grad_weight);
    if (plan.method == Method::gemm) {
      linear_backward_weight(as_pixels(x), as_pixels(grad_y), as_matrix(grad_weight), {});
    } else if (plan.method == Method::own) {
      run_core_conv(*plan.own, x, grad_y, {}, grad_weight);
    } else {
      conv2d_naive(Conv2dPass::backward_weight, g, x, grad_y, grad_weight);
    }
    return true;
  });
}

}  // namespace tessera::cuda
