#include <memory>
#include <optional>

#include "bench/rivals/onednn_calls.h"
#include "bench/rivals/onednn_rival.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
using Forward = dnnl::convolution_forward;
using BackwardInput = dnnl::convolution_backward_data;
using BackwardWeight = dnnl::convolution_backward_weights;

struct Layouts {
  Desc x, weight, y;
};

// oneDNN gives sizes in NCHW and OIHW order, whatever the strides are.
Desc nhwc(const Shape& s) { return strided({s[0], s[3], s[1], s[2]}, {s[1] * s[2] * s[3], 1, s[2] * s[3], s[3]}); }

// With groups, the weight has an additional dimension for them.
Desc weight_layout(const ConvShape& s) {
  if (s.groups == 1) return nhwc(s.weight());
  const std::int64_t out = s.out / s.groups;
  const std::int64_t in = s.in / s.groups;
  const std::int64_t filter = s.kernel * s.kernel * in;
  return strided({s.groups, out, in, s.kernel, s.kernel}, {out * filter, filter, 1, s.kernel * in, in});
}

Layouts plain(const ConvShape& s) { return {nhwc(s.x()), weight_layout(s), nhwc(s.y())}; }

// Images in blocks of channels, whatever oneDNN would choose. For inference it would choose NHWC.
Layouts in_blocks(const ConvShape& s) {
  const Tag tag = __builtin_cpu_supports("avx512f") ? Tag::nChw16c : Tag::nChw8c;
  const Layouts ours = plain(s);
  const auto image = [&](const Desc& layout) { return Desc(layout.dims(), dnnl::memory::data_type::f32, tag); };
  return {image(ours.x), any_layout(ours.weight.dims()), image(ours.y)};
}

Desc any(const Desc& plain) { return any_layout(plain.dims()); }

struct Way {
  std::string name;
  dnnl::algorithm algorithm;
  Layouts wanted;
  ConvUse use = ConvUse::training;
};

struct Window {
  Dims stride, padding;
};

Window window_of(const ConvShape& s) { return {{s.stride, s.stride}, {s.padding(), s.padding()}}; }

Forward::primitive_desc forward_description(const ConvShape& s, const Way& way) {
  const auto [stride, padding] = window_of(s);
  const auto kind = way.use == ConvUse::training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const Forward::desc wanted(kind, way.algorithm, way.wanted.x, way.wanted.weight, way.wanted.y, stride, padding, padding);
  return {wanted, with_own_scratchpad(), rival_engine()};
}

// Each set-up returns the name of the implementation that oneDNN chose.
std::string set_up_forward(OnednnCalls& calls, const ConvShape& s, const ConvTensors& t, const Way& way) {
  const Layouts ours = plain(s);
  const auto chosen = forward_description(s, way);
  const auto read_weight = way.use == ConvUse::training ? &OnednnCalls::read : &OnednnCalls::read_constant;
  calls.read(DNNL_ARG_SRC, t.x, ours.x, chosen.src_desc());
  (calls.*read_weight)(DNNL_ARG_WEIGHTS, t.weight, ours.weight, chosen.weights_desc());
  calls.write(DNNL_ARG_DST, t.y, ours.y, chosen.dst_desc());
  calls.primitive(Forward(chosen), chosen.scratchpad_desc());
  return chosen.impl_info_str();
}

std::string set_up_backward_input(OnednnCalls& calls, const ConvShape& s, const ConvTensors& t, const Way& way) {
  const Layouts ours = plain(s);
  const auto [stride, padding] = window_of(s);
  const BackwardInput::desc wanted(way.algorithm, way.wanted.x, way.wanted.weight, way.wanted.y, stride, padding, padding);
  const BackwardInput::primitive_desc chosen(wanted, with_own_scratchpad(), rival_engine(), forward_description(s, way));
  calls.read(DNNL_ARG_DIFF_DST, t.y, ours.y, chosen.diff_dst_desc());
  calls.read(DNNL_ARG_WEIGHTS, t.weight, ours.weight, chosen.weights_desc());
  calls.write(DNNL_ARG_DIFF_SRC, t.x, ours.x, chosen.diff_src_desc());
  calls.primitive(BackwardInput(chosen), chosen.scratchpad_desc());
  return chosen.impl_info_str();
}

std::string set_up_backward_weight(OnednnCalls& calls, const ConvShape& s, const ConvTensors& t, const Way& way) {
  const Layouts ours = plain(s);
  const auto [stride, padding] = window_of(s);
  const BackwardWeight::desc wanted(way.algorithm, way.wanted.x, way.wanted.weight, way.wanted.y, stride, padding, padding);
  const BackwardWeight::primitive_desc chosen(wanted, with_own_scratchpad(), rival_engine(), forward_description(s, way));
  calls.read(DNNL_ARG_SRC, t.x, ours.x, chosen.src_desc());
  calls.read(DNNL_ARG_DIFF_DST, t.y, ours.y, chosen.diff_dst_desc());
  calls.write(DNNL_ARG_DIFF_WEIGHTS, t.weight, ours.weight, chosen.diff_weights_desc());
  calls.primitive(BackwardWeight(chosen), chosen.scratchpad_desc());
  return chosen.impl_info_str();
}

// oneDNN's plain loops are some hundred times slower. Nobody would call the library that way.
bool is_reference(const std::string& implementation) { return implementation.starts_with("ref"); }

// Nothing if oneDNN has no such implementation, or only plain loops.
std::optional<Contestant> conv_calls(ConvPass pass, const ConvShape& s, const ConvTensors& t, const Way& way, bool reorders) {
  const auto set_up = pass == ConvPass::forward          ? set_up_forward
                      : pass == ConvPass::backward_input ? set_up_backward_input
                                                         : set_up_backward_weight;
  auto calls = std::make_shared<OnednnCalls>(reorders);
  try {
    if (is_reference(set_up(*calls, s, t, way))) return std::nullopt;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return std::nullopt;
    throw;
  }
  // The calls read the operands' memory, and `t` keeps it alive.
  Contestant side{way.name, [calls, t] { calls->run(); }};
  if (reorders) side.result = [result = t.result(pass)] { return result; };
  return side;
}

std::vector<Contestant> all_of(ConvPass pass, const ConvShape& s, const ConvTensors& t, ConvUse use, std::vector<Way> ways,
                               bool reorders) {
  TESSERA_CHECK(use == ConvUse::training || pass == ConvPass::forward, InternalError, to_string(pass), " is no inference");
  std::vector<Contestant> all;
  for (Way& way : ways) {
    way.use = use;
    if (auto side = conv_calls(pass, s, t, way, reorders)) all.push_back(std::move(*side));
  }
  return all;
}

// A pointwise convolution as a product of the pixels [p, channels] and the weight [out, in].
Product as_product(ConvPass pass, const ConvShape& s, const ConvTensors& t) {
  const std::int64_t pixels = s.n * s.size * s.size;
  switch (pass) {
    case ConvPass::forward: return {{pixels, s.out, s.in}, t.x, t.weight, t.y, false, true};
    case ConvPass::backward_input: return {{pixels, s.in, s.out}, t.y, t.weight, t.x, false, false};
    case ConvPass::backward_weight: return {{s.out, s.in, pixels}, t.y, t.x, t.weight, true, false};
  }
  throw InternalError("convolution: unknown pass");
}

}  // namespace

const Tensor& ConvTensors::result(ConvPass pass) const {
  return pass == ConvPass::forward ? y : pass == ConvPass::backward_input ? x : weight;
}

std::vector<Contestant> conv_rivals(ConvPass pass, const ConvShape& s, const ConvTensors& t, ConvUse use) {
  const auto [x, w, y] = plain(s);
  const auto direct = dnnl::algorithm::convolution_direct;
  const Layouts blocked{any(x), any(w), any(y)};
  std::vector<Contestant> all = all_of(pass, s, t, use,
                                       {{"direct, plain layouts", direct, {x, w, y}},
                                        {"direct, NHWC, any weights", direct, {x, any(w), y}},
                                        {"direct, any layout", direct, blocked},
                                        {"direct, x NHWC", direct, {x, any(w), any(y)}},
                                        {"direct, y NHWC", direct, {any(x), any(w), y}},
                                        {"direct, images in blocks", direct, in_blocks(s)},
                                        {"Winograd", dnnl::algorithm::convolution_winograd, blocked},
                                        {"automatic", dnnl::algorithm::convolution_auto, blocked}},
                                       true);
  if (!s.pointwise()) return all;
  const Product product = as_product(pass, s, t);
  for (Contestant& side : product_rivals(product)) all.push_back(std::move(side));
  if (use == ConvUse::inference) {
    for (Contestant& side : packed_product_rivals(product)) all.push_back(std::move(side));
  }
  return all;
}

std::vector<Contestant> blocked_conv_rivals(ConvPass pass, const ConvShape& s, const ConvTensors& t, ConvUse use) {
  const auto [x, w, y] = plain(s);
  const Layouts blocked{any(x), any(w), any(y)};
  return all_of(pass, s, t, use,
                {{"direct, blocked", dnnl::algorithm::convolution_direct, blocked},
                 {"direct, in blocks of channels", dnnl::algorithm::convolution_direct, in_blocks(s)},
                 {"Winograd, blocked", dnnl::algorithm::convolution_winograd, blocked}},
                false);
}

}  // namespace tessera::bench
