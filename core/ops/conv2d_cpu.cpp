#include "core/cpu/onednn.h"
#include "core/cpu/reference/conv2d.h"
#include "core/ops/conv2d.h"
#include "core/ops/linear.h"

namespace tessera::cpu {
namespace {

using reference::Conv2dGeometry;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

enum class Pass : std::int64_t { forward, backward_input, backward_weight };

// How one pass of one convolution runs. The only place that decides is choose_plan().
struct Conv2dPlan {
  enum class Method { gemm, onednn, reference };
  Method method;
  std::unique_ptr<onednn::Primitive> primitive;  // operands: x, weight, y and, where there is one, bias
};

// oneDNN's descriptions of our tensors. It names sizes in NCHW and OIHW order whatever the strides.
struct Layouts {
  Desc x, weight, bias, y;
  Dims weight_sizes;
};

Layouts describe(const Conv2dGeometry& g, bool with_bias) {
  const std::int64_t gi = g.group_in();
  const std::int64_t per_out = g.kh * g.kw * gi;
  Dims sizes{g.out, gi, g.kh, g.kw};
  Dims strides{per_out, 1, g.kw * gi, gi};
  if (g.options.groups > 1) {
    sizes = {g.options.groups, g.group_out(), gi, g.kh, g.kw};
    strides = {g.group_out() * per_out, per_out, 1, g.kw * gi, gi};
  }
  return {onednn::strided({g.n, g.in, g.h, g.w}, {g.h * g.w * g.in, 1, g.w * g.in, g.in}), onednn::strided(sizes, strides),
          with_bias ? onednn::strided({g.out}, {1}) : Desc(),
          onednn::strided({g.n, g.out, g.oh, g.ow}, {g.oh * g.ow * g.out, 1, g.ow * g.out, g.out}), sizes};
}

// oneDNN counts gaps between taps (0 = dense) and takes the border on both sides. Ours may leave pixels on the right that no
// window reaches; the right border then is 0.
struct Window {
  Dims stride, dilation, left, right;
};

Window describe_window(const Conv2dGeometry& g) {
  const auto& [stride, padding, dilation, groups] = g.options;
  const auto right = [](std::int64_t count, std::int64_t step, std::int64_t kernel, std::int64_t gap, std::int64_t size,
                        std::int64_t left) {
    return std::max<std::int64_t>(0, (count - 1) * step + gap * (kernel - 1) + 1 - size - left);
  };
  return {{stride.h, stride.w},
          {dilation.h - 1, dilation.w - 1},
          {padding.h, padding.w},
          {right(g.oh, stride.h, g.kh, dilation.h, g.h, padding.h), right(g.ow, stride.w, g.kw, dilation.w, g.w, padding.w)}};
}

using Forward = dnnl::convolution_forward;
using BackwardInput = dnnl::convolution_backward_data;
using BackwardWeight = dnnl::convolution_backward_weights;

Forward::primitive_desc forward_description(const Layouts& l, const Window& w, const Desc& weight) {
  const auto direct = dnnl::algorithm::convolution_direct;
  return {
      Forward::desc(dnnl::prop_kind::forward_training, direct, l.x, weight, l.bias, l.y, w.stride, w.dilation, w.left, w.right),
      onednn::attributes(), onednn::engine()};
}

std::unique_ptr<onednn::Primitive> build_forward(const Layouts& l, const Window& w, const Desc& weight) {
  const auto chosen = forward_description(l, w, weight);
  std::vector<onednn::Operand> operands{{DNNL_ARG_SRC, l.x, chosen.src_desc()},
                                        {DNNL_ARG_WEIGHTS, l.weight, chosen.weights_desc()},
                                        {DNNL_ARG_DST, l.y, chosen.dst_desc(), true}};
  if (!l.bias.is_zero()) operands.push_back({DNNL_ARG_BIAS, l.bias, chosen.bias_desc()});
  return std::make_unique<onednn::Primitive>(Forward(chosen), chosen.scratchpad_desc(), operands);
}

std::unique_ptr<onednn::Primitive> build_backward_input(const Layouts& l, const Window& w, const Desc& weight) {
  const BackwardInput::desc wanted(dnnl::algorithm::convolution_direct, l.x, weight, l.y, w.stride, w.dilation, w.left, w.right);
  const BackwardInput::primitive_desc chosen(wanted, onednn::attributes(), onednn::engine(), forward_description(l, w, weight));
  const std::vector<onednn::Operand> operands{{DNNL_ARG_DIFF_SRC, l.x, chosen.diff_src_desc(), true},
                                              {DNNL_ARG_WEIGHTS, l.weight, chosen.weights_desc()},
                                              {DNNL_ARG_DIFF_DST, l.y, chosen.diff_dst_desc()}};
  return std::make_unique<onednn::Primitive>(BackwardInput(chosen), chosen.scratchpad_desc(), operands);
}

std::unique_ptr<onednn::Primitive> build_backward_weight(const Layouts& l, const Window& w, const Desc& weight) {
  const BackwardWeight::desc wanted(dnnl::algorithm::convolution_direct, l.x, weight, l.bias, l.y, w.stride, w.dilation, w.left,
                                    w.right);
  const BackwardWeight::primitive_desc chosen(wanted, onednn::attributes(), onednn::engine(), forward_description(l, w, weight));
  std::vector<onednn::Operand> operands{{DNNL_ARG_SRC, l.x, chosen.src_desc()},
                                        {DNNL_ARG_DIFF_WEIGHTS, l.weight, chosen.diff_weights_desc(), true},
                                        {DNNL_ARG_DIFF_DST, l.y, chosen.diff_dst_desc()}};
  if (!l.bias.is_zero()) operands.push_back({DNNL_ARG_DIFF_BIAS, l.bias, chosen.diff_bias_desc(), true});
  return std::make_unique<onednn::Primitive>(BackwardWeight(chosen), chosen.scratchpad_desc(), operands);
}

std::unique_ptr<onednn::Primitive> build(Pass pass, const Layouts& layouts, const Window& window, const Desc& weight) {
  return onednn::build_or_null([&] {
    switch (pass) {
      case Pass::forward: return build_forward(layouts, window, weight);
      case Pass::backward_input: return build_backward_input(layouts, window, weight);
      case Pass::backward_weight: return build_backward_weight(layouts, window, weight);
    }
    throw InternalError("conv2d: unknown pass");
  });
}

// A 1x1 convolution that visits every pixel once is a matrix product over pixels.
bool is_pointwise(const Conv2dGeometry& g) {
  const Extent one{1, 1};
  return g.kh == 1 && g.kw == 1 && g.options.stride == one && g.options.padding == Extent{0, 0} && g.options.groups == 1;
}

// Images stay NHWC; the weights' layout is oneDNN's choice first (reordering them costs microseconds), then ours.
std::shared_ptr<Conv2dPlan> choose_plan(Pass pass, const Conv2dGeometry& g, DType dtype, bool with_bias) {
  using Method = Conv2dPlan::Method;
  if (is_pointwise(g)) return std::make_shared<Conv2dPlan>(Conv2dPlan{Method::gemm, nullptr});
  if (dtype != DType::f32) return std::make_shared<Conv2dPlan>(Conv2dPlan{Method::reference, nullptr});
  const Layouts layouts = describe(g, with_bias);
  const Window window = describe_window(g);
  for (const Desc& weight : {onednn::any_layout(layouts.weight_sizes), layouts.weight}) {
    if (auto primitive = build(pass, layouts, window, weight)) {
      return std::make_shared<Conv2dPlan>(Conv2dPlan{Method::onednn, std::move(primitive)});
    }
  }
  return std::make_shared<Conv2dPlan>(Conv2dPlan{Method::reference, nullptr});
}

std::shared_ptr<Conv2dPlan> plan_for(Pass pass, const Conv2dGeometry& g, DType dtype, bool with_bias) {
  thread_local onednn::PlanCache<Conv2dPlan> cache;
  const auto& [stride, padding, dilation, groups] = g.options;
  return cache.get({static_cast<std::int64_t>(pass), static_cast<std::int64_t>(dtype), with_bias, g.n, g.h, g.w, g.in, g.out,
                    g.kh, g.kw, stride.h, stride.w, padding.h, padding.w, dilation.h, dilation.w, groups},
                   [&] { return choose_plan(pass, g, dtype, with_bias); });
}

Conv2dGeometry geometry_of(const Tensor& x, const Tensor& weight, const Tensor& y, const Conv2dOptions& options) {
  return {x.dim(0), x.dim(1), x.dim(2), x.dim(3), weight.dim(0), weight.dim(1), weight.dim(2), y.dim(1), y.dim(2), options};
}

Tensor as_pixels(const Tensor& x) { return x.reshape({x.dim(0) * x.dim(1) * x.dim(2), x.dim(3)}); }
Tensor as_matrix(const Tensor& weight) { return weight.reshape({weight.dim(0), weight.dim(3)}); }

void execute(Conv2dPlan& plan, const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& bias) {
  if (bias.defined()) {
    plan.primitive->execute({x.raw(), weight.raw(), y.raw(), bias.raw()});
  } else {
    plan.primitive->execute({x.raw(), weight.raw(), y.raw()});
  }
}

}  // namespace

void conv2d_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Conv2dOptions& options) {
  if (y.numel() == 0) return;
  const Conv2dGeometry g = geometry_of(x, weight, y, options);
  const auto plan = plan_for(Pass::forward, g, x.dtype(), bias.defined());
  switch (plan->method) {
    case Conv2dPlan::Method::gemm: return linear_forward(as_pixels(x), as_matrix(weight), bias, as_pixels(y));
    case Conv2dPlan::Method::onednn: return execute(*plan, x, weight, y, bias);
    case Conv2dPlan::Method::reference:
      dispatch_real(x.dtype(), "conv2d", [&]<class T>() {
        reference::conv2d_forward<T>(g, x.data<T>(), weight.data<T>(), bias.defined() ? bias.data<T>() : nullptr, y.data<T>());
      });
  }
}

void conv2d_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x, const Conv2dOptions& options) {
  if (grad_x.numel() == 0) return;
  const Conv2dGeometry g = geometry_of(grad_x, weight, grad_y, options);
  const auto plan = plan_for(Pass::backward_input, g, grad_x.dtype(), false);
  switch (plan->method) {
    case Conv2dPlan::Method::gemm: return linear_backward_input(as_pixels(grad_y), as_matrix(weight), as_pixels(grad_x));
    case Conv2dPlan::Method::onednn: return execute(*plan, grad_x, weight, grad_y, Tensor());
    case Conv2dPlan::Method::reference:
      dispatch_real(grad_x.dtype(), "conv2d", [&]<class T>() {
        reference::conv2d_backward_input<T>(g, grad_y.data<T>(), weight.data<T>(), grad_x.data<T>());
      });
  }
}

void conv2d_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias,
                            const Conv2dOptions& options) {
  if (x.numel() == 0) {
    grad_weight.fill(0);
    if (grad_bias.defined()) grad_bias.fill(0);
    return;
  }
  const Conv2dGeometry g = geometry_of(x, grad_weight, grad_y, options);
  const auto plan = plan_for(Pass::backward_weight, g, x.dtype(), grad_bias.defined());
  switch (plan->method) {
    case Conv2dPlan::Method::gemm:
      return linear_backward_weight(as_pixels(x), as_pixels(grad_y), as_matrix(grad_weight), grad_bias);
    case Conv2dPlan::Method::onednn: return execute(*plan, x, grad_weight, grad_y, grad_bias);
    case Conv2dPlan::Method::reference:
      dispatch_real(x.dtype(), "conv2d", [&]<class T>() {
        reference::conv2d_backward_weight<T>(g, x.data<T>(), grad_y.data<T>(), grad_weight.data<T>(),
                                             grad_bias.defined() ? grad_bias.data<T>() : nullptr);
      });
  }
}

}  // namespace tessera::cpu
