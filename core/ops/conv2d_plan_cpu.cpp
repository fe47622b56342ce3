#include "core/ops/conv2d_plan_cpu.h"

#include <string_view>

#include "core/cpu/depthwise/depthwise.h"
#include "core/cpu/onednn.h"
#include "core/cpu/parallel.h"
#include "core/cpu/winograd/winograd.h"
#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/ops/conv2d_ways.h"
#include "core/support/error.h"

namespace tessera::cpu {
namespace {

using reference::Conv2dGeometry;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

// oneDNN's descriptions of our tensors. It names sizes in NCHW and OIHW order for all strides. Weights are stored in f32.
struct Layouts {
  Desc x, weight, bias, y;
  Dims weight_sizes, weight_strides;
  DType dtype;  // of the images, and of the weights during the product
};

Layouts describe(const Conv2dGeometry& g, DType dtype, bool with_bias) {
  const std::int64_t gi = g.group_in();
  const std::int64_t per_out = g.kh * g.kw * gi;
  Dims sizes{g.out, gi, g.kh, g.kw};
  Dims strides{per_out, 1, g.kw * gi, gi};
  if (g.options.groups > 1) {
    sizes = {g.options.groups, g.group_out(), gi, g.kh, g.kw};
    strides = {g.group_out() * per_out, per_out, 1, g.kw * gi, gi};
  }
  return {onednn::strided({g.n, g.in, g.h, g.w}, {g.h * g.w * g.in, 1, g.w * g.in, g.in}, dtype),
          onednn::strided(sizes, strides),
          with_bias ? onednn::strided({g.out}, {1}) : Desc(),
          onednn::strided({g.n, g.out, g.oh, g.ow}, {g.oh * g.ow * g.out, 1, g.ow * g.out, g.out}, dtype),
          sizes,
          strides,
          dtype};
}

// oneDNN counts gaps between taps (0 = dense) and takes the padding of both sides. Our windows may leave pixels on the right
// uncovered. The right padding is then 0.
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

// What oneDNN is asked for. Where a layout differs from ours, the primitive reorders on the way in and out.
struct Request {
  dnnl::algorithm algorithm;
  Desc x, y;
  bool plain_weight = false;  // the weight is in our layout; otherwise oneDNN chooses the layout
  bool relu = false;
  // With forward_inference, Winograd takes weights that are transformed already, and smaller tiles where they suit. With
  // forward_training, it transforms the weights in every call.
  dnnl::prop_kind kind = dnnl::prop_kind::forward_training;
};

Desc weight_in(DType dtype, const Layouts& l, const Request& r) {
  return r.plain_weight ? onednn::strided(l.weight_sizes, l.weight_strides, dtype) : onednn::any_layout(l.weight_sizes, dtype);
}

Forward::primitive_desc forward_description(const Layouts& l, const Window& w, const Request& r) {
  const Desc weight = weight_in(l.dtype, l, r);
  return {Forward::desc(r.kind, r.algorithm, r.x, weight, l.bias, r.y, w.stride, w.dilation, w.left, w.right),
          r.relu ? onednn::relu_attributes() : onednn::attributes(), onednn::engine()};
}

std::unique_ptr<onednn::Primitive> build_forward(const Layouts& l, const Window& w, const Request& r) {
  const auto chosen = forward_description(l, w, r);
  std::vector<onednn::Operand> operands{{DNNL_ARG_SRC, l.x, chosen.src_desc()},
                                        {DNNL_ARG_WEIGHTS, l.weight, chosen.weights_desc()},
                                        {DNNL_ARG_DST, l.y, chosen.dst_desc(), true}};
  if (!l.bias.is_zero()) operands.push_back({DNNL_ARG_BIAS, l.bias, chosen.bias_desc()});
  return std::make_unique<onednn::Primitive>(Forward(chosen), chosen.scratchpad_desc(), operands);
}

// oneDNN 2.6's jit_bf16_1x1 (AVX-512 without AMX) multiplies the channels of y in pairs. If their number is odd in NHWC, it pairs
// the last channel with the first of the next pixel: for some sizes the gradient is wrong.
bool pairs_across_pixels(const BackwardInput::primitive_desc& chosen, const Layouts& l) {
  const std::int64_t channels = l.weight_sizes[l.weight_sizes.size() - 4];  // of y, in a group
  const bool pairs = std::string_view(chosen.impl_info_str()).starts_with("jit_bf16_1x1");
  return pairs && channels % 2 == 1 && chosen.diff_dst_desc() == l.y;
}

std::unique_ptr<onednn::Primitive> build_backward_input(const Layouts& l, const Window& w, const Request& r) {
  const BackwardInput::desc wanted(r.algorithm, r.x, weight_in(l.dtype, l, r), r.y, w.stride, w.dilation, w.left, w.right);
  const BackwardInput::primitive_desc chosen(wanted, onednn::attributes(), onednn::engine(), forward_description(l, w, r));
  if (pairs_across_pixels(chosen, l)) return nullptr;
  const std::vector<onednn::Operand> operands{{DNNL_ARG_DIFF_SRC, l.x, chosen.diff_src_desc(), true},
                                              {DNNL_ARG_WEIGHTS, l.weight, chosen.weights_desc()},
                                              {DNNL_ARG_DIFF_DST, l.y, chosen.diff_dst_desc()}};
  return std::make_unique<onednn::Primitive>(BackwardInput(chosen), chosen.scratchpad_desc(), operands);
}

std::unique_ptr<onednn::Primitive> build_backward_weight(const Layouts& l, const Window& w, const Request& r) {
  const Desc weight = weight_in(parameter_dtype(l.dtype), l, r);
  const BackwardWeight::desc wanted(r.algorithm, r.x, weight, l.bias, r.y, w.stride, w.dilation, w.left, w.right);
  const BackwardWeight::primitive_desc chosen(wanted, onednn::attributes(), onednn::engine(), forward_description(l, w, r));
  std::vector<onednn::Operand> operands{{DNNL_ARG_SRC, l.x, chosen.src_desc()},
                                        {DNNL_ARG_DIFF_WEIGHTS, l.weight, chosen.diff_weights_desc(), true},
                                        {DNNL_ARG_DIFF_DST, l.y, chosen.diff_dst_desc()}};
  if (!l.bias.is_zero()) operands.push_back({DNNL_ARG_DIFF_BIAS, l.bias, chosen.diff_bias_desc(), true});
  return std::make_unique<onednn::Primitive>(BackwardWeight(chosen), chosen.scratchpad_desc(), operands);
}

std::unique_ptr<onednn::Primitive> build(Conv2dPass pass, const Layouts& layouts, const Window& window, const Request& request) {
  return onednn::build_or_null([&] {
    switch (pass) {
      case Conv2dPass::forward: return build_forward(layouts, window, request);
      case Conv2dPass::backward_input: return build_backward_input(layouts, window, request);
      case Conv2dPass::backward_weight: return build_backward_weight(layouts, window, request);
    }
    throw InternalError("conv2d: unknown pass");
  });
}

// Images stay NHWC. The weights take the layout of oneDNN's choice (reordering costs microseconds) or, if that fails, ours.
std::unique_ptr<onednn::Primitive> build_nhwc(Conv2dPass pass, const Layouts& l, const Window& window, bool relu) {
  for (const bool plain_weight : {false, true}) {
    const Request request{dnnl::algorithm::convolution_direct, l.x, l.y, plain_weight, relu};
    if (auto primitive = build(pass, l, window, request)) return primitive;
  }
  return nullptr;
}

// Reorders the images to oneDNN's blocked layout and back. This pays where the algorithm gains more than the reorders cost.
std::unique_ptr<onednn::Primitive> build_blocked(Conv2dPass pass, const Layouts& l, const Window& window,
                                                 dnnl::algorithm algorithm, bool relu, dnnl::prop_kind kind) {
  return build(pass, l, window,
               {algorithm, onednn::any_layout(l.x.dims(), l.dtype), onednn::any_layout(l.y.dims(), l.dtype), false, relu, kind});
}

// Limit of the transformed filters. 256 by 256 channels take 9 MiB. Larger filters leave the caches, and every thread holds a sum
// of their size.
constexpr std::int64_t kMostFilterBytes = std::int64_t{12} << 20;

// "conv2d.forward n128 h32 w32 c16>16 k3x3 s1x1 p1x1 d1x1 g1 bias0 threads2", followed by " relu", " constant" and " bf16" where
// they hold
std::string decision_key(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, const Conv2dForm& form) {
  return str("conv2d.", name_of(pass), ' ', describe(g), " bias", static_cast<int>(form.bias), " threads", onednn::threads_now(),
             form.relu ? " relu" : "", form.constant_weight ? " constant" : "", dtype == DType::bf16 ? " bf16" : "");
}

using Method = Conv2dPlan::Method;

constexpr std::int64_t kFewChannels = 16;  // f32 numbers in the widest vector

// A constant weight is transformed once. oneDNN can do that from OIHW only.
Conv2dPlan onednn_winograd(Conv2dPass pass, const Conv2dGeometry& g, const Conv2dForm& form) {
  Layouts layouts = describe(g, DType::f32, form.bias);
  if (form.constant_weight) layouts.weight = onednn::strided(layouts.weight_sizes, {g.in * g.kh * g.kw, g.kh * g.kw, g.kw, 1});
  auto primitive = build_blocked(pass, layouts, describe_window(g), dnnl::algorithm::convolution_winograd, form.relu,
                                 form.constant_weight ? dnnl::prop_kind::forward_inference : dnnl::prop_kind::forward_training);
  return {Method::onednn, kOnednnWinograd, std::move(primitive), {}, form.constant_weight};
}

Conv2dPlan with_filters(Method method, const char* algorithm) {
  Conv2dPlan plan{method, algorithm, nullptr};
  plan.user = std::make_shared<char>();
  return plan;
}

// Threads inside oneDNN's bf16 weight gradient spin several times a call to wait for each other. If another program takes a
// processor from one of them, all stand still, for seconds. Parts that run on a single thread never wait.
Conv2dPlan split(const Conv2dGeometry& g, DType dtype, const Conv2dForm& form) {
  Conv2dPlan plan{Method::split, "split", nullptr};
  const std::int64_t parts = std::min<std::int64_t>(onednn::threads_now(), g.n);
  const OneThread scope;
  for (std::int64_t part = 0; part < parts; ++part) {
    Conv2dGeometry own = g;
    own.n = g.n * (part + 1) / parts - g.n * part / parts;
    plan.parts.push_back(build_nhwc(Conv2dPass::backward_weight, describe(own, dtype, form.bias), describe_window(own), false));
    if (!plan.parts.back()) return {Method::split, "split", nullptr};
  }
  return plan;
}

std::vector<Conv2dPlan> candidates_for(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, const Conv2dForm& form) {
  std::vector<Conv2dPlan> all;
  const auto offer = [&](Conv2dPlan plan) {
    if (plan.primitive || plan.parts.size() > 1) all.push_back(std::move(plan));
  };
  const bool choose = decisions_active() && g.flops() >= kLeastFlopsToMeasure;
  if (g.is_pointwise()) all.push_back({Method::gemm, "gemm", nullptr});
  const bool of_patches = dtype == DType::f32 && g.is_of_patches();
  const auto offer_patches = [&] { all.push_back({Method::patches, kPatchesConv2d, nullptr}); };
  if (of_patches && g.in < kFewChannels) offer_patches();
  if (dtype == DType::f32 && depthwise::suits(g)) all.push_back(with_filters(Method::depthwise, "depthwise"));
  const bool splits = dtype == DType::bf16 && pass == Conv2dPass::backward_weight;
  if (splits && (choose || all.empty())) offer(split(g, dtype, form));
  const bool evenly = !all.empty() && !all.back().parts.empty() && g.n % onednn::threads_now() == 0;
  if (!all.empty() && !choose) return all;
  if (!evenly) {  // with equal parts, no other way of the library is faster
    const Layouts layouts = describe(g, dtype, form.bias);
    const Window window = describe_window(g);
    offer({Method::onednn, "nhwc", build_nhwc(pass, layouts, window, form.relu)});
    if (choose || all.empty()) {
      offer({Method::onednn, kBlockedConv2d,
             build_blocked(pass, layouts, window, dnnl::algorithm::convolution_direct, form.relu,
                           dnnl::prop_kind::forward_training)});
    }
  }
  if (choose && of_patches && g.in >= kFewChannels) offer_patches();
  if (!choose || !winograd::suits(g)) return all;
  if (dtype == DType::f32) offer(onednn_winograd(pass, g, form));
  const bool offered = dtype == DType::f32 || !all.empty();  // without a convolution of the library, bf16 is widened
  if (offered && winograd::filter_bytes(g) <= kMostFilterBytes) all.push_back(with_filters(Method::winograd, kNhwcWinograd));
  return all;
}

}  // namespace

std::shared_ptr<Conv2dPlan> choose_conv2d_plan(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, const Conv2dForm& form,
                                               const std::function<void(const Conv2dPlan&)>& run) {
  const auto fixed = [](Method method, const char* name) {
    return std::make_shared<Conv2dPlan>(Conv2dPlan{method, name, nullptr});
  };
  if (dtype == DType::f64) return g.is_pointwise() ? fixed(Method::gemm, "gemm") : fixed(Method::reference, "reference");
  std::vector<Conv2dPlan> all = candidates_for(pass, g, dtype, form);
  if (all.empty()) return dtype == DType::f32 ? fixed(Method::reference, "reference") : fixed(Method::f32, "f32");
  std::vector<std::string> names;
  for (const Conv2dPlan& plan : all) names.push_back(plan.algorithm);
  const auto seconds = [&](std::size_t i) { return seconds_of(i, [&] { run(all[i]); }); };
  const std::size_t chosen = decide(decision_key(pass, g, dtype, form), names, seconds);
  return std::make_shared<Conv2dPlan>(std::move(all[chosen]));
}

}  // namespace tessera::cpu
