// How one pass of one convolution runs on the CPU. Included by conv2d_cpu.cpp and tests of the algorithms only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/cpu/reference/conv2d.h"
#include "core/dtype.h"

namespace tessera::cpu {

namespace onednn {
class Primitive;
}

using tessera::Conv2dPass;

// What tells plans of one geometry apart. The last two are of forward only.
struct Conv2dForm {
  bool bias = false;
  bool relu = false;  // the plan does y = max(y, 0) as well
  bool constant_weight = false;  // reordering the weight costs nothing: it is done once
};

struct Conv2dPlan {
  enum class Method { gemm, patches, depthwise, onednn, winograd, split, reference, f32 };
  Method method;
  std::string algorithm;  // gemm, patches, depthwise, winograd_nhwc, reference, f32; of oneDNN: nhwc, blocked, winograd, split
  // Shared with what a ConstantWeights scope keeps for it.
  std::shared_ptr<onednn::Primitive> primitive;  // operands: x, weight, y and, where there is one, bias
  // For winograd and depthwise: the user that their filters, laid out for them, are kept for.
  std::shared_ptr<const void> user = {};
  bool channels_first = false;  // takes the weight as [out, in, kh, kw]; under a ConstantWeights scope only
  std::vector<std::shared_ptr<onednn::Primitive>> parts = {};  // of split: each takes its share of the images on one thread
};

// The only place that decides; `dtype` is that of the images. Under a DecisionScope the algorithms of oneDNN that take the shape
// are candidates: direct from NHWC, direct in blocked layout, and for 3x3 with stride 1 Winograd in blocked layout (Lavin & Gray
// 2016), reorders included, besides our Winograd from NHWC (core/cpu/winograd); otherwise direct from NHWC. Some algorithms come
// before all of these: for 1x1 over every pixel the matrix product over pixels; for depthwise convolutions of f32 our kernels
// (core/cpu/depthwise); for windows side by side over f32 images of few channels, which fill no vector, the product over copied
// windows. With more channels that product is a candidate after the direct ones. For bf16 only our Winograd is a candidate; it
// multiplies in f32. The weight gradient of bf16 is the sum of those of parts of the images, one for each thread (split). It is
// the first choice with or without a scope. Where the library has no convolution of bf16, that of f32 runs on widened operands.
// `run` executes a plan on the caller's operands, for timing.
std::shared_ptr<Conv2dPlan> choose_conv2d_plan(Conv2dPass pass, const reference::Conv2dGeometry& geometry, DType dtype,
                                               const Conv2dForm& form, const std::function<void(const Conv2dPlan&)>& run);

// How often this thread ran `algorithm`, over all passes: shows that a forced choice was obeyed.
std::size_t conv2d_runs(const std::string& algorithm);

}  // namespace tessera::cpu
