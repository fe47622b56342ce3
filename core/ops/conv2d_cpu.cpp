#include <map>

#include "core/autograd/accumulate.h"
#include "core/cpu/depthwise/depthwise.h"
#include "core/cpu/in_f32.h"
#include "core/cpu/map.h"
#include "core/cpu/onednn.h"
#include "core/cpu/winograd/winograd.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv2d_plan_cpu.h"
#include "core/ops/linear.h"
#include "core/ops/reduce.h"
#include "core/ops/relu.h"
#include "core/ops/relu_math.h"

namespace tessera::cpu {
namespace {

using reference::Conv2dGeometry;
using Method = Conv2dPlan::Method;

constexpr std::size_t kWeight = 1;  // index among a primitive's operands

thread_local std::map<std::string, std::size_t> runs;

Tensor as_pixels(const Tensor& x) { return x.reshape({x.dim(0) * x.dim(1) * x.dim(2), x.dim(3)}); }
Tensor as_matrix(const Tensor& weight) { return weight.reshape({weight.dim(0), weight.dim(1) * weight.dim(2) * weight.dim(3)}); }

// Views images [n, h, w, in] as [n, oh, ow, kh, kw in] without copying. The geometry must be of patches.
Tensor as_windows(const Tensor& x, const Conv2dGeometry& g) {
  return x.reshape({g.n, g.oh, g.kh, g.ow, g.kw * g.in}).permute({0, 1, 3, 2, 4});
}
Shape rows_of_windows(const Conv2dGeometry& g) { return {g.n * g.oh * g.ow, g.kh * g.kw * g.in}; }
Tensor copied_windows(const Tensor& x, const Conv2dGeometry& g) {
  return as_windows(x, g).contiguous().reshape(rows_of_windows(g));
}

void execute(onednn::Primitive& primitive, const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& bias) {
  if (bias.defined()) {
    primitive.execute({x.raw(), weight.raw(), y.raw(), bias.raw()});
  } else {
    primitive.execute({x.raw(), weight.raw(), y.raw()});
  }
}

// The gradients of the parts are added in the order of the parts.
void execute_parts(const Conv2dPlan& plan, const Tensor& x, const Tensor& grad_weight, const Tensor& grad_y,
                   const Tensor& grad_bias) {
  std::vector<Tensor> weights{grad_weight};
  std::vector<Tensor> biases{grad_bias};
  while (weights.size() < plan.parts.size()) {
    weights.push_back(Tensor::empty_like(grad_weight));
    biases.push_back(grad_bias.defined() ? Tensor::empty_like(grad_bias) : Tensor());
  }
  // Allocated here: memory plans compare histories of allocations, and threads would change their order.
  std::vector<std::vector<Tensor>> buffers;
  for (const auto& primitive : plan.parts) buffers.push_back(primitive->buffers());
  parallel_parts(x.dim(0), static_cast<int>(plan.parts.size()), [&](std::int64_t begin, std::int64_t end, int part) {
    const auto at = static_cast<std::size_t>(part);
    std::vector<void*> data{x.slice(0, begin, end).raw(), weights[at].raw(), grad_y.slice(0, begin, end).raw()};
    if (biases[at].defined()) data.push_back(biases[at].raw());
    plan.parts[at]->execute_in(buffers[at], data);
  });
  for (std::size_t part = 1; part < plan.parts.size(); ++part) {
    cpu::accumulate(grad_weight, weights[part]);
    if (grad_bias.defined()) cpu::accumulate(grad_bias, biases[part]);
  }
}

// Like execute(), but the weight is reordered once per ConstantWeights scope.
void execute_constant(const Conv2dPlan& plan, const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& bias) {
  onednn::Primitive& primitive = *plan.primitive;
  const auto described = [&] { return plan.channels_first ? weight.permute({0, 3, 1, 2}).contiguous() : weight; };
  const Tensor& packed = ConstantWeights::current()->derived(plan.primitive, weight,
                                                             [&] { return primitive.reordered(kWeight, described().raw()); });
  if (!packed.defined()) return execute(primitive, x, described(), y, bias);
  std::vector<void*> data{x.raw(), packed.raw(), y.raw()};
  if (bias.defined()) data.push_back(bias.raw());
  primitive.execute(data, kWeight);
}

// Filters in the layout of the plan's kernels. In a ConstantWeights scope, they are laid out once.
template <class Derive>
Tensor laid_out(const Conv2dPlan& plan, const Tensor& weight, Derive&& derive) {
  return ConstantWeights::current() != nullptr ? ConstantWeights::current()->derived(plan.user, weight, derive) : derive();
}

std::shared_ptr<Conv2dPlan> plan_for(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, const Conv2dForm& form,
                                     const std::function<void(const Conv2dPlan&)>& run) {
  thread_local onednn::PlanCache<Conv2dPlan> cache;
  const auto& [stride, padding, dilation, groups] = g.options;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const std::vector<std::int64_t> sizes{g.n, g.h, g.w, g.in, g.out, g.kh, g.kw, groups};
  std::vector<std::int64_t> key{number(pass), number(dtype),        form.bias,
                                form.relu,    form.constant_weight, number(decision_epoch())};
  key.insert(key.end(), sizes.begin(), sizes.end());
  for (const Extent& extent : {stride, padding, dilation}) key.insert(key.end(), {extent.h, extent.w});
  auto plan = cache.get(std::move(key), [&] { return choose_conv2d_plan(pass, g, dtype, form, run); });
  ++runs[plan->algorithm];
  return plan;
}

struct AddRelu {
  template <class T>
  T operator()(T y, T residual) const {
    return ReluForward{}(y + residual);
  }
};

void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Conv2dOptions& options,
             bool relu) {
  if (y.numel() == 0) return;
  const Conv2dGeometry g = geometry_of(x, weight, y, options);
  const Conv2dForm form{bias.defined(), relu, ConstantWeights::current() != nullptr};
  const auto offset = [&]() -> const float* { return bias.defined() ? bias.data<float>() : nullptr; };
  const auto run = [&](const Conv2dPlan& plan) {
    if (plan.method == Method::onednn) {
      return form.constant_weight ? execute_constant(plan, x, weight, y, bias) : execute(*plan.primitive, x, weight, y, bias);
    }
    if (plan.method == Method::depthwise) {
      const Tensor filters = laid_out(plan, weight, [&] { return depthwise::filters(weight); });
      return depthwise::forward(depthwise::kernels(), g, x, filters, {offset(), relu}, y);
    }
    if (plan.method == Method::winograd) {
      const Tensor filters = laid_out(plan, weight, [&] { return winograd::filters(winograd::kernels(), weight); });
      return winograd::forward(winograd::kernels(), g, x, filters, {offset(), relu}, y);
    }
    if (plan.method == Method::gemm) {
      return linear_forward(as_pixels(x), as_matrix(weight), bias, as_pixels(y), relu);
    }
    if (plan.method == Method::patches) {
      return linear_forward(copied_windows(x, g), as_matrix(weight), bias, as_pixels(y), relu);
    }
    if (plan.method == Method::f32) {
      in_f32([&](const Tensor& from, const Tensor& to) { conv2d_forward(from, weight, bias, to, options); }, y, x);
    } else {
      dispatch_real(x.dtype(), "conv2d", [&]<class T>() {
        reference::conv2d_forward<T>(g, x.data<T>(), weight.data<T>(), bias.defined() ? bias.data<T>() : nullptr, y.data<T>());
      });
    }
    if (relu) relu_forward(y, y);
  };
  run(*plan_for(Conv2dPass::forward, g, x.dtype(), form, run));
}

}  // namespace

std::size_t conv2d_runs(const std::string& algorithm) { return runs[algorithm]; }

void conv2d_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Conv2dOptions& options) {
  forward(x, weight, bias, y, options, false);
}

void conv2d_relu_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual, const Tensor& y,
                         const Conv2dOptions& options) {
  forward(x, weight, bias, y, options, !residual.defined());
  if (residual.defined()) map("conv2d_relu", AddRelu{}, y, y, residual);
}

void conv2d_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x, const Conv2dOptions& options) {
  if (grad_x.numel() == 0) return;
  const Conv2dGeometry g = geometry_of(grad_x, weight, grad_y, options);
  const auto run = [&](const Conv2dPlan& plan) {
    switch (plan.method) {
      case Method::gemm: return linear_backward_input(as_pixels(grad_y), as_matrix(weight), as_pixels(grad_x));
      case Method::patches: {
        const Tensor windows = Tensor::empty(rows_of_windows(g));
        linear_backward_input(as_pixels(grad_y), as_matrix(weight), windows);
        return as_windows(grad_x, g).copy_from(windows.reshape({g.n, g.oh, g.ow, g.kh, g.kw * g.in}));
      }
      case Method::depthwise:
        return depthwise::backward_input(depthwise::kernels(), g, grad_y, depthwise::input_grad_filters(g, weight), grad_x);
      case Method::onednn: return execute(*plan.primitive, grad_x, weight, grad_y, Tensor());
      case Method::winograd:
        return winograd::backward_input(winograd::kernels(), g, grad_y, winograd::turned_filters(winograd::kernels(), weight),
                                        grad_x);
      case Method::f32:
        return in_f32([&](const Tensor& from, const Tensor& to) { conv2d_backward_input(from, weight, to, options); }, grad_x,
                      grad_y);
      case Method::split: throw InternalError("conv2d: only the weight gradient is split");
      case Method::reference:
        dispatch_real(grad_x.dtype(), "conv2d", [&]<class T>() {
          reference::conv2d_backward_input<T>(g, grad_y.data<T>(), weight.data<T>(), grad_x.data<T>());
        });
    }
  };
  run(*plan_for(Conv2dPass::backward_input, g, grad_x.dtype(), {}, run));
}

void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias,
                            const Conv2dOptions& options) {
  if (x.numel() == 0) {
    grad_weight.fill(0);
    if (grad_bias.defined()) grad_bias.fill(0);
    return;
  }
  const Conv2dGeometry g = geometry_of(x, grad_weight, grad_y, options);
  const auto run = [&](const Conv2dPlan& plan) {
    switch (plan.method) {
      case Method::gemm: return linear_backward_weight(as_pixels(x), as_pixels(grad_y), as_matrix(grad_weight), grad_bias);
      case Method::patches:
        return linear_backward_weight(copied_windows(x, g), as_pixels(grad_y), as_matrix(grad_weight), grad_bias);
      case Method::onednn: return execute(*plan.primitive, x, grad_weight, grad_y, grad_bias);
      case Method::depthwise:
        depthwise::backward_weight(depthwise::kernels(), g, x, grad_y, grad_weight);
        if (grad_bias.defined()) sum_forward(grad_y, 1, grad_bias);
        return;
      case Method::winograd:
        winograd::backward_weight(winograd::kernels(), g, x, grad_y, grad_weight);
        if (grad_bias.defined()) sum_forward(grad_y.to(grad_bias.dtype()), 1, grad_bias);
        return;
      case Method::split: return execute_parts(plan, x, grad_weight, grad_y, grad_bias);
      case Method::f32: return conv2d_backward_weight(x.to(DType::f32), grad_y.to(DType::f32), grad_weight, grad_bias, options);
      case Method::reference:
        dispatch_real(x.dtype(), "conv2d", [&]<class T>() {
          reference::conv2d_backward_weight<T>(g, x.data<T>(), grad_y.data<T>(), grad_weight.data<T>(),
                                               grad_bias.defined() ? grad_bias.data<T>() : nullptr);
        });
    }
  };
  run(*plan_for(Conv2dPass::backward_weight, g, x.dtype(), {.bias = grad_bias.defined()}, run));
}

}  // namespace tessera::cpu
