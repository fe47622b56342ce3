#include "bench/rivals/onednn_network.h"

#include <algorithm>

#include "bench/rivals/onednn_calls.h"
#include "bench/turns.h"
#include "core/ops/conv2d.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
constexpr auto kF32 = dnnl::memory::data_type::f32;
constexpr auto kInference = dnnl::prop_kind::forward_inference;

// oneDNN gives sizes in NCHW and OIHW order, whatever the strides are.
Desc nhwc(const Shape& s) { return strided({s[0], s[3], s[1], s[2]}, {s[1] * s[2] * s[3], 1, s[2] * s[3], s[3]}); }

Tag blocks() { return __builtin_cpu_supports("avx512f") ? Tag::nChw16c : Tag::nChw8c; }

Dims pair(Extent e) { return {e.h, e.w}; }

dnnl::memory empty(const Desc& layout) { return {layout, rival_engine()}; }

// `from` in another layout. It goes through a plain one, the only one that oneDNN reorders to Winograd's filters from.
dnnl::memory laid_out(dnnl::stream& stream, const Tensor& from, const Desc& ours, const Desc& plain, const Desc& wanted) {
  dnnl::memory source(ours, rival_engine(), from.raw());
  dnnl::memory between = empty(plain);
  dnnl::memory result = empty(wanted);
  dnnl::reorder(source, between).execute(stream, source, between);
  dnnl::reorder(between, result).execute(stream, between, result);
  stream.wait();
  return result;
}

dnnl::primitive_attr attributes_of(const OnednnNetwork::Tail& tail) {
  dnnl::post_ops after;
  if (tail.residual) after.append_sum(1.0f);
  if (tail.relu) after.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  dnnl::primitive_attr attributes = with_own_scratchpad();
  attributes.set_post_ops(after);
  return attributes;
}

}  // namespace

OnednnNetwork::OnednnNetwork(const Tensor& x, Layout layout) : layout_(layout), stream_(rival_engine()), kept_{x} {
  images_.emplace_back(nhwc(x.shape()), rival_engine(), x.raw());
}

OnednnNetwork::Image OnednnNetwork::keep(const dnnl::memory& image) {
  images_.push_back(image);
  return images_.size() - 1;
}

void OnednnNetwork::execute(std::vector<Step>& steps) {
  for (Step& step : steps) step.primitive.execute(stream_, step.arguments);
  stream_.wait();
}

void OnednnNetwork::add(std::vector<Step> steps) {
  execute(steps);
  std::ranges::move(steps, std::back_inserter(steps_));
}

double OnednnNetwork::milliseconds(Convolution& convolution, const Tail& tail) {
  dnnl::memory residual;
  if (tail.residual) {  // saved, because every run overwrites it
    residual = empty(convolution.y.get_desc());
    dnnl::reorder(convolution.y, residual).execute(stream_, convolution.y, residual);
  }
  std::vector<double> times;
  for (int i = 0; i < 10; ++i) {
    const double start = steady_seconds();
    execute(convolution.steps);
    if (i > 0) times.push_back(1e3 * (steady_seconds() - start));
    if (tail.residual) {
      dnnl::reorder(residual, convolution.y).execute(stream_, residual, convolution.y);
      stream_.wait();
    }
  }
  return quantile(times, 0.5);
}

// Nothing if oneDNN has no such primitive, or only plain loops.
std::optional<OnednnNetwork::Convolution> OnednnNetwork::describe(dnnl::algorithm algorithm, const dnnl::memory& x,
                                                                  const Tensor& weight, const Tail& tail,
                                                                  const Conv2dOptions& options) {
  const Desc found = x.get_desc();
  const Dims in = found.dims();
  const Shape y = conv2d_output_shape({in[0], in[2], in[3], in[1]}, weight.shape(), options);
  const Dims out{y[0], y[3], y[1], y[2]};
  const Desc weights = nhwc(weight.shape());
  const bool fills_a_block = in[1] >= 8;  // otherwise oneDNN has a special layout
  const auto wanted = [&](const Dims& sizes) {
    return layout_ == Layout::blocks ? Desc(sizes, kF32, blocks()) : any_layout(sizes);
  };
  const Desc y_wanted = tail.residual ? images_[*tail.residual].get_desc() : wanted(out);
  const Desc bias = tail.bias.defined() ? strided({out[1]}, {1}) : Desc();
  using Forward = dnnl::convolution_forward;
  try {
    const Forward::primitive_desc chosen(
        Forward::desc(kInference, algorithm, fills_a_block ? wanted(in) : any_layout(in), any_layout(weights.dims()), bias,
                      y_wanted, pair(options.stride), {options.dilation.h - 1, options.dilation.w - 1}, pair(options.padding),
                      pair(options.padding)),
        attributes_of(tail), rival_engine());
    if (std::string_view(chosen.impl_info_str()).starts_with("ref")) return std::nullopt;
    Convolution result;
    dnnl::memory source = x;
    if (chosen.src_desc() != found) {
      source = empty(chosen.src_desc());
      result.steps.push_back({dnnl::reorder(x, source), {{DNNL_ARG_FROM, x}, {DNNL_ARG_TO, source}}});
    }
    const Desc plain(weights.dims(), kF32, Tag::oihw);
    result.y = tail.residual ? images_[*tail.residual] : empty(chosen.dst_desc());
    Step step{Forward(chosen),
              {{DNNL_ARG_SRC, source},
               {DNNL_ARG_WEIGHTS, laid_out(stream_, weight, weights, plain, chosen.weights_desc())},
               {DNNL_ARG_DST, result.y},
               {DNNL_ARG_SCRATCHPAD, empty(chosen.scratchpad_desc())}}};
    if (tail.bias.defined()) step.arguments.emplace(DNNL_ARG_BIAS, dnnl::memory(bias, rival_engine(), tail.bias.raw()));
    result.steps.push_back(std::move(step));
    return result;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return std::nullopt;
    throw;
  }
}

OnednnNetwork::Image OnednnNetwork::convolve(Image x, const Tensor& weight, const Tail& tail, const Conv2dOptions& options) {
  std::optional<Convolution> best;
  double least = 0;
  for (const auto algorithm : {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_winograd}) {
    std::optional<Convolution> way = describe(algorithm, images_[x], weight, tail, options);
    if (!way) continue;
    const double ms = milliseconds(*way, tail);
    if (best && ms >= least) continue;
    best = std::move(way);
    least = ms;
  }
  TESSERA_CHECK(best.has_value(), InternalError, "oneDNN has no convolution of ", weight.shape());
  kept_.insert(kept_.end(), {weight, tail.bias});
  add(std::move(best->steps));
  return keep(best->y);
}

OnednnNetwork::Image OnednnNetwork::max_pool(Image x, Extent kernel, Extent stride, Extent padding) {
  const Desc from = images_[x].get_desc();
  const Dims in = from.dims();
  const auto size = [](std::int64_t n, std::int64_t k, std::int64_t step, std::int64_t pad) {
    return (n + 2 * pad - k) / step + 1;
  };
  const Dims out{in[0], in[1], size(in[2], kernel.h, stride.h, padding.h), size(in[3], kernel.w, stride.w, padding.w)};
  using Pool = dnnl::pooling_forward;
  const Pool::primitive_desc chosen(Pool::desc(kInference, dnnl::algorithm::pooling_max, from, any_layout(out), pair(stride),
                                               pair(kernel), pair(padding), pair(padding)),
                                    with_own_scratchpad(), rival_engine());
  const dnnl::memory y = empty(chosen.dst_desc());
  steps_.push_back(
      {Pool(chosen), {{DNNL_ARG_SRC, images_[x]}, {DNNL_ARG_DST, y}, {DNNL_ARG_SCRATCHPAD, empty(chosen.scratchpad_desc())}}});
  return keep(y);
}

OnednnNetwork::Image OnednnNetwork::average(Image x) {
  const Desc from = images_[x].get_desc();
  const Dims in = from.dims();
  using Pool = dnnl::pooling_forward;
  const Pool::primitive_desc chosen(Pool::desc(kInference, dnnl::algorithm::pooling_avg_exclude_padding, from,
                                               any_layout({in[0], in[1], 1, 1}), {1, 1}, {in[2], in[3]}, {0, 0}, {0, 0}),
                                    with_own_scratchpad(), rival_engine());
  const dnnl::memory y = empty(chosen.dst_desc());
  steps_.push_back(
      {Pool(chosen), {{DNNL_ARG_SRC, images_[x]}, {DNNL_ARG_DST, y}, {DNNL_ARG_SCRATCHPAD, empty(chosen.scratchpad_desc())}}});
  return keep(y);
}

OnednnNetwork::Image OnednnNetwork::product(Image x, const Tensor& weight, const Tensor& bias) {
  const std::int64_t rows = images_[x].get_desc().dims()[0];
  const std::int64_t in = weight.dim(1);
  const std::int64_t out = weight.dim(0);
  using Product = dnnl::inner_product_forward;
  const Desc ours = strided({out, in, 1, 1}, {in, 1, 1, 1});
  const Desc offsets = strided({out}, {1});
  const Product::primitive_desc chosen(
      Product::desc(kInference, images_[x].get_desc(), any_layout(ours.dims()), offsets, any_layout({rows, out})),
      with_own_scratchpad(), rival_engine());
  const dnnl::memory y = empty(chosen.dst_desc());
  add({{Product(chosen),
        {{DNNL_ARG_SRC, images_[x]},
         {DNNL_ARG_WEIGHTS, laid_out(stream_, weight, ours, ours, chosen.weights_desc())},
         {DNNL_ARG_BIAS, dnnl::memory(offsets, rival_engine(), bias.raw())},
         {DNNL_ARG_DST, y},
         {DNNL_ARG_SCRATCHPAD, empty(chosen.scratchpad_desc())}}}});
  kept_.insert(kept_.end(), {weight, bias});
  return keep(y);
}

void OnednnNetwork::run() { execute(steps_); }

Tensor OnednnNetwork::values(Image image) const {
  dnnl::memory from = images_[image];
  const Dims s = from.get_desc().dims();
  const bool rows = s.size() == 2;
  const Tensor result = Tensor::empty(rows ? Shape{s[0], s[1]} : Shape{s[0], s[2], s[3], s[1]});
  dnnl::memory to(rows ? strided(s, {s[1], 1}) : nhwc(result.shape()), rival_engine(), result.raw());
  dnnl::stream stream(rival_engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return result;
}

}  // namespace tessera::bench
