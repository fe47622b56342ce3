#include "core/cuda/libraries/dnn_plan.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <span>

#include "core/cuda/kernel/alignment.h"
#include "core/cuda/libraries/dnn_engines.h"
#include "core/cuda/libraries/dnn_handle.h"
#include "core/cuda/libraries/epilogue.h"
#include "core/cuda/libraries/product_weights.h"
#include "core/cuda/runtime/range.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera::cuda {

// x, weight and y of the forward pass, or the tensors in their places in a backward pass.
struct DnnDescriptors {
  Conv2dPass pass;
  DType dtype;  // of the images
  DType weight_dtype;
  ConvEpilogue epilogue;
  Device device;
  TensorDescriptor x, y, bias;
  FilterDescriptor weight;
  ConvolutionDescriptor convolution;
  ActivationDescriptor activation;
};

namespace {

using Algorithm = DnnConvolution::Algorithm;

constexpr std::size_t kWorkspace = std::size_t{256} << 20;
// The engines that are timed to choose from. In bf16 they include the library's fastest engine for most convolutions on an H100,
// but not for images of 8x8 pixels.
constexpr DnnLists kToChoose{.a = 6, .b = 2, .fallback = 2};
constexpr DnnLists kFirst{.a = 1};
constexpr int kMostAlgorithms = 16;  // twice the library's number for a pass: with and without tensor cores
constexpr const char* kOfEngines = "cudnn ";  // prefix of an engine's name, before the library's version
constexpr float kOne = 1;
constexpr float kZero = 0;

ConvolutionDescriptor describe_convolution(const Conv2dOptions& o, cudnnMathType_t math) {
  cudnnConvolutionDescriptor_t made = nullptr;
  check(cudnnCreateConvolutionDescriptor(&made), "conv2d");
  ConvolutionDescriptor owned(made);
  const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
  check(cudnnSetConvolution2dDescriptor(made, whole(o.padding.h), whole(o.padding.w), whole(o.stride.h), whole(o.stride.w),
                                        whole(o.dilation.h), whole(o.dilation.w), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "conv2d");
  check(cudnnSetConvolutionGroupCount(made, whole(o.groups)), "conv2d");
  check(cudnnSetConvolutionMathType(made, math), "conv2d");
  return owned;
}

ActivationDescriptor describe_activation(bool relu) {
  cudnnActivationDescriptor_t made = nullptr;
  check(cudnnCreateActivationDescriptor(&made), "conv2d");
  ActivationDescriptor owned(made);
  const cudnnActivationMode_t mode = relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY;
  check(cudnnSetActivationDescriptor(made, mode, CUDNN_NOT_PROPAGATE_NAN, 0.0), "conv2d");
  return owned;
}

// What f32 products may be rounded to. CUDNN_DEFAULT_MATH allows tf32, despite its name.
cudnnMathType_t allowed_math(DType dtype, bool tf32) {
  if (is_half(dtype)) return CUDNN_TENSOR_OP_MATH;
  return tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

std::shared_ptr<DnnDescriptors> describe(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, DType weight_dtype,
                                         const ConvEpilogue& epilogue, bool tf32, Device device) {
  return std::make_shared<DnnDescriptors>(
      DnnDescriptors{pass, dtype, weight_dtype, epilogue, device, describe_images(dtype, g.n, g.h, g.w, g.in),
                     describe_images(dtype, g.n, g.oh, g.ow, g.out), describe_images(dtype, 1, 1, 1, g.out),
                     describe_filters(weight_dtype, g.out, g.kh, g.kw, g.group_in()),
                     describe_convolution(g.options, allowed_math(dtype, tf32)), describe_activation(epilogue.relu)});
}

// Appends the algorithms that give the same bytes in every run.
template <class Performance>
void append_deterministic(const Performance* results, int count, bool only_fma, std::vector<Algorithm>& all) {
  for (int i = 0; i < count; ++i) {
    const Performance& result = results[i];
    if (result.status != CUDNN_STATUS_SUCCESS || result.determinism != CUDNN_DETERMINISTIC) continue;
    const int math = only_fma ? CUDNN_FMA_MATH : result.mathType;
    const Algorithm algorithm{static_cast<int>(result.algo), math, 0, false};
    const auto same = [&](const Algorithm& other) { return other.number == algorithm.number && other.math == algorithm.math; };
    if (std::ranges::none_of(all, same)) all.push_back(algorithm);
  }
}

std::vector<Algorithm> proposed(const DnnDescriptors& d, bool only_fma) {
  std::vector<Algorithm> all;
  int count = 0;
  const auto collect = [&](auto* results, cudnnStatus_t status) {
    if (is_unoffered(status)) return;
    check(status, "conv2d");
    append_deterministic(results, count, only_fma, all);
  };
  const cudnnHandle_t handle = dnn_handle(d.device);
  if (d.pass == Conv2dPass::forward) {
    cudnnConvolutionFwdAlgoPerf_t results[kMostAlgorithms];
    collect(results, cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x.get(), d.weight.get(), d.convolution.get(), d.y.get(),
                                                            kMostAlgorithms, &count, results));
  } else if (d.pass == Conv2dPass::backward_input) {
    cudnnConvolutionBwdDataAlgoPerf_t results[kMostAlgorithms];
    collect(results, cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, d.weight.get(), d.y.get(), d.convolution.get(),
                                                                 d.x.get(), kMostAlgorithms, &count, results));
  } else {
    cudnnConvolutionBwdFilterAlgoPerf_t results[kMostAlgorithms];
    collect(results, cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, d.x.get(), d.y.get(), d.convolution.get(),
                                                                   d.weight.get(), kMostAlgorithms, &count, results));
  }
  return all;
}

void set_math(const DnnDescriptors& d, const Algorithm& algorithm) {
  check(cudnnSetConvolutionMathType(d.convolution.get(), static_cast<cudnnMathType_t>(algorithm.math)), "conv2d");
}

cudnnStatus_t measure_workspace(const DnnDescriptors& d, const Algorithm& algorithm, std::size_t* bytes) {
  set_math(d, algorithm);
  const cudnnHandle_t handle = dnn_handle(d.device);
  switch (d.pass) {
    case Conv2dPass::forward:
      return cudnnGetConvolutionForwardWorkspaceSize(handle, d.x.get(), d.weight.get(), d.convolution.get(), d.y.get(),
                                                     static_cast<cudnnConvolutionFwdAlgo_t>(algorithm.number), bytes);
    case Conv2dPass::backward_input:
      return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, d.weight.get(), d.y.get(), d.convolution.get(), d.x.get(),
                                                          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm.number), bytes);
    case Conv2dPass::backward_weight:
      return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, d.x.get(), d.y.get(), d.convolution.get(), d.weight.get(),
                                                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm.number),
                                                            bytes);
  }
  throw InternalError("conv2d: unknown pass");
}

// The algorithms that fit into the workspace, with the workspace that each needs.
std::vector<Algorithm> algorithms_of(const DnnDescriptors& d, bool only_fma) {
  std::vector<Algorithm> fitting;
  for (Algorithm algorithm : proposed(d, only_fma)) {
    const cudnnStatus_t status = measure_workspace(d, algorithm, &algorithm.workspace);
    if (is_unoffered(status)) continue;
    check(status, "conv2d");
    if (algorithm.workspace <= kWorkspace) fitting.push_back(algorithm);
  }
  return fitting;
}

std::string name_of(const DnnDescriptors& d, const Algorithm& algorithm) {
  static constexpr const char* kForward[] = {"implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
                                             "winograd",      "winograd_nonfused"};
  static constexpr const char* kInput[] = {"input0", "input1", "fft", "fft_tiling", "winograd", "winograd_nonfused"};
  static constexpr const char* kWeight[] = {"weight0",  "weight1",           "fft",       "weight3",
                                            "winograd", "winograd_nonfused", "fft_tiling"};
  const auto at = static_cast<std::size_t>(algorithm.number);
  const auto of = [at](std::span<const char* const> names) { return at < names.size() ? names[at] : "unnamed"; };
  const char* const name = d.pass == Conv2dPass::forward          ? of(kForward)
                           : d.pass == Conv2dPass::backward_input ? of(kInput)
                                                                  : of(kWeight);
  const char* const math = algorithm.math == CUDNN_FMA_MATH         ? " fma"
                           : algorithm.math == CUDNN_TENSOR_OP_MATH ? " tensor"
                           : algorithm.math == CUDNN_DEFAULT_MATH   ? ""
                                                                    : " convert";
  return str("cudnn ", name, math, d.weight_dtype != d.dtype ? " f32" : "", algorithm.fused ? " fused" : "");
}

// The library documents an epilogue without ReLU for one algorithm only.
bool may_fuse(const DnnDescriptors& d, const Algorithm& algorithm) {
  const auto& [bias, relu, residual] = d.epilogue;
  if (d.pass != Conv2dPass::forward || !(bias || relu || residual)) return false;
  return relu || algorithm.number == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
}

const char* range_of(Conv2dPass pass) {
  switch (pass) {
    case Conv2dPass::forward: return "conv2d.forward";
    case Conv2dPass::backward_input: return "conv2d.backward_input";
    default: return "conv2d.backward_weight";
  }
}

// The library's kernels rely on an alignment of 16 bytes, but a view may begin anywhere.
constexpr std::size_t kAlignment = 16;
Tensor aligned(const Tensor& x) { return !x.defined() || is_aligned(x.raw(), kAlignment) ? x : x.clone(); }

// A failure is only a warning, because the algorithms still run without engines.
std::vector<DnnEngine> engines_or_none(const DnnRequest& request, Device device) {
  const auto none = [](const std::exception& error) {
    log_warning(str("conv2d: cuDNN's engines take no part: ", error.what()));
    return std::vector<DnnEngine>();
  };
  try {
    return dnn_engines(dnn_handle(device), request);
  } catch (const DeviceError& error) {
    return none(error);
  } catch (const OutOfMemoryError& error) {
    return none(error);
  }
}

bool fits_32_bits(const Conv2dGeometry& g) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return g.n * g.h * g.w * g.in <= kMost && g.n * g.oh * g.ow * g.out <= kMost && g.out * g.kh * g.kw * g.group_in() <= kMost;
}

}  // namespace

DnnConvolution::DnnConvolution(std::shared_ptr<const DnnDescriptors> descriptors, const Algorithm& algorithm)
    : descriptors_(std::move(descriptors)), algorithm_(algorithm), name_(name_of(*descriptors_, algorithm_)) {}

DnnConvolution::DnnConvolution(std::shared_ptr<const DnnDescriptors> descriptors, std::shared_ptr<const DnnEngine> engine)
    : descriptors_(std::move(descriptors)),
      engine_(std::move(engine)),
      name_(str(kOfEngines, cudnnGetVersion(), ' ', engine_->name)) {
  algorithm_.workspace = static_cast<std::size_t>(engine_->workspace);
}

std::string DnnConvolution::engine_in(std::string_view name) {
  const std::string front = str(kOfEngines, cudnnGetVersion(), ' ');
  const bool fits = name.starts_with(front + "engine ");
  return std::string(fits ? name.substr(front.size()) : std::string_view());
}

bool DnnConvolution::rounds_gradient() const {
  const DnnDescriptors& d = *descriptors_;
  return d.pass == Conv2dPass::backward_weight && is_half(d.weight_dtype);
}

bool DnnConvolution::try_run(const ConvOperands& operands) const {
  const Range range(range_of(descriptors_->pass));
  const DnnDescriptors& d = *descriptors_;
  const Tensor a = aligned(operands.a);
  const Tensor b = aligned(operands.b);
  const DType written = d.pass == Conv2dPass::backward_weight ? d.weight_dtype : d.dtype;
  const bool direct = operands.result.dtype() == written && is_aligned(operands.result.raw(), kAlignment);
  const Tensor result = direct ? operands.result : Tensor::empty(operands.result.shape(), written, d.device);
  const ConvOperands o{a, b, result, operands.bias, aligned(operands.residual)};
  if (!engine_) set_math(d, algorithm_);
  const Tensor workspace = Tensor::empty({static_cast<std::int64_t>(algorithm_.workspace)}, DType::u8, d.device);
  const int ran = engine_            ? run_engine(o, workspace.raw())
                  : algorithm_.fused ? run_fused(o, workspace.raw())
                                     : run_plain(o, workspace.raw());
  const auto status = static_cast<cudnnStatus_t>(ran);
  if (is_refusal(status)) return false;
  if (status != CUDNN_STATUS_SUCCESS) {
    check(status, str(range_of(d.pass), " by '", name_, "' of ", describe(a), " and ", describe(b)).c_str());
  }
  if (!direct) operands.result.copy_from(result);
  if (algorithm_.fused) return true;
  if (d.pass == Conv2dPass::forward) finish_product(operands.result, o.bias, o.residual, d.epilogue.relu);
  return true;
}

// y = relu(conv(x) + z + bias). Without a residual, z is y itself, times zero.
int DnnConvolution::run_fused(const ConvOperands& o, void* workspace) const {
  const DnnDescriptors& d = *descriptors_;
  const Tensor bias =
      o.bias.defined() ? aligned(rounded_weight(o.bias, d.dtype)) : Tensor::zeros({o.result.dim(3)}, d.dtype, d.device);
  const Tensor z = o.residual.defined() ? o.residual : o.result;
  return cudnnConvolutionBiasActivationForward(dnn_handle(d.device), &kOne, d.x.get(), o.a.raw(), d.weight.get(), o.b.raw(),
                                               d.convolution.get(), static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_.number),
                                               workspace, algorithm_.workspace, o.residual.defined() ? &kOne : &kZero, d.y.get(),
                                               z.raw(), d.bias.get(), bias.raw(), d.activation.get(), d.y.get(), o.result.raw());
}

int DnnConvolution::run_plain(const ConvOperands& o, void* workspace) const {
  const DnnDescriptors& d = *descriptors_;
  void* const result = o.result.raw();
  const cudnnHandle_t handle = dnn_handle(d.device);
  switch (d.pass) {
    case Conv2dPass::forward:
      return cudnnConvolutionForward(handle, &kOne, d.x.get(), o.a.raw(), d.weight.get(), o.b.raw(), d.convolution.get(),
                                     static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_.number), workspace, algorithm_.workspace,
                                     &kZero, d.y.get(), result);
    case Conv2dPass::backward_input:
      return cudnnConvolutionBackwardData(handle, &kOne, d.weight.get(), o.b.raw(), d.y.get(), o.a.raw(), d.convolution.get(),
                                          static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_.number), workspace,
                                          algorithm_.workspace, &kZero, d.x.get(), result);
    case Conv2dPass::backward_weight:
      return cudnnConvolutionBackwardFilter(handle, &kOne, d.x.get(), o.a.raw(), d.y.get(), o.b.raw(), d.convolution.get(),
                                            static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_.number), workspace,
                                            algorithm_.workspace, &kZero, d.weight.get(), result);
  }
  throw InternalError("conv2d: unknown pass");
}

int DnnConvolution::run_engine(const ConvOperands& o, void* workspace) const {
  const DnnDescriptors& d = *descriptors_;
  void* const a = o.a.raw();
  void* const b = o.b.raw();
  void* const result = o.result.raw();
  const DnnBackend pack = variant_pack(d.pass == Conv2dPass::forward          ? std::array<void*, 3>{a, b, result}
                                       : d.pass == Conv2dPass::backward_input ? std::array<void*, 3>{result, b, a}
                                                                              : std::array<void*, 3>{a, result, b},
                                       workspace);
  return cudnnBackendExecute(dnn_handle(d.device), engine_->plan.get(), pack.get());
}

std::vector<std::shared_ptr<DnnConvolution>> dnn_convolutions(Conv2dPass pass, const Conv2dGeometry& g, DType dtype,
                                                              const ConvEpilogue& epilogue, bool tf32, Device device,
                                                              const WantedEngines& wanted) {
  if (dtype == DType::f64 || !fits_32_bits(g)) return {};
  const bool only_fma = dtype == DType::f32 && !tf32;
  std::vector<std::shared_ptr<DnnConvolution>> all;
  // If no engine is wanted, one is made for convolutions in groups only: the older calls' algorithms took up to 50 times as long
  // on an H100 (cuDNN 9.19), except for weight gradients in f32.
  const bool grouped = g.options.groups > 1 && !(only_fma && pass == Conv2dPass::backward_weight);
  const std::string only = wanted.all ? std::string() : DnnConvolution::engine_in(wanted.only);
  const bool some = wanted.all || !only.empty();
  const auto offer_engines = [&](const std::shared_ptr<DnnDescriptors>& descriptors) {
    for (DnnEngine& engine : engines_or_none({.pass = pass,
                                              .geometry = g,
                                              .images = dtype,
                                              .weights = descriptors->weight_dtype,
                                              .tf32 = tf32,
                                              .workspace = kWorkspace,
                                              .lists = some ? kToChoose : kFirst,
                                              .only = only},
                                             device)) {
      all.push_back(std::make_shared<DnnConvolution>(descriptors, std::make_shared<const DnnEngine>(std::move(engine))));
    }
  };
  const auto offer = [&](DType weight_dtype) {
    const auto descriptors = describe(pass, g, dtype, weight_dtype, epilogue, tf32, device);
    // Engines that write a half type's gradient in f32 took up to 27 times as long as kernels that round it.
    const bool may_round = weight_dtype == dtype;
    if (may_round && grouped) offer_engines(descriptors);
    for (Algorithm algorithm : algorithms_of(*descriptors, only_fma)) {
      algorithm.fused = may_fuse(*descriptors, algorithm);
      if (algorithm.fused) all.push_back(std::make_shared<DnnConvolution>(descriptors, algorithm));
      algorithm.fused = false;
      all.push_back(std::make_shared<DnnConvolution>(descriptors, algorithm));
    }
    if (may_round && some && !grouped) offer_engines(descriptors);
  };
  if (pass == Conv2dPass::backward_weight && is_half(dtype)) offer(DType::f32);
  offer(dtype);
  return all;
}

}  // namespace tessera::cuda
