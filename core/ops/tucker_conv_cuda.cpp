// The fused Tucker-2 convolution on a GPU: which kernels run, and with which arguments. The backward pass has four launches: the
// transposition of weights, the pass from grad_y to grad_x and the narrow gradients, the correlations, the sum of their parts.
#include <cstdint>
#include <memory>
#include <vector>

#include "core/cuda/kernel/alignment.h"
#include "core/cuda/runtime/context.h"
#include "core/cuda/tucker_conv/kernels.h"
#include "core/cuda/tucker_conv/plan.h"
#include "core/device/precision.h"
#include "core/ops/tucker_conv.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

template <class T>
T* pointer(const Tensor& tensor) {
  return tensor.defined() ? tensor.data<T>() : nullptr;
}

// Whether rows of so many channels can be read 16 bytes at a time.
template <class T>
bool in_vectors(const T* first, std::int64_t channels) {
  return is_aligned(first, 16) && channels * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
}

template <class T>
void set_vectors(ChainArguments<T>& args) {
  const ChainShape& shape = args.shape;
  args.vector_x = in_vectors(args.x, shape.wide_in);
  args.vector_in = in_vectors(args.in_factor, shape.wide_in);
  args.vector_core = in_vectors(args.core, shape.narrow_in);
  args.vector_out = in_vectors(args.out_factor, shape.narrow_out);
}

void run(const ChainArguments<float>& args, const BlockShape& block, Device device) {
  block.tensor_cores ? launch_chain_tf32(args, block, device) : launch_chain_f32(args, block, device);
}
void run(const ChainArguments<bfloat16>& args, const BlockShape& block, Device device) { launch_chain_bf16(args, block, device); }
void run(const ChainArguments<float16>& args, const BlockShape& block, Device device) { launch_chain_f16(args, block, device); }

void correlate(const CorrelateArguments<float>& args, TuckerMath math, int walkers, Device device) {
  math == TuckerMath::tf32 ? launch_correlate_tf32(args, walkers, device) : launch_correlate_f32(args, walkers, device);
}
void correlate(const CorrelateArguments<bfloat16>& args, TuckerMath, int walkers, Device device) {
  launch_correlate_bf16(args, walkers, device);
}
void correlate(const CorrelateArguments<float16>& args, TuckerMath, int walkers, Device device) {
  launch_correlate_f16(args, walkers, device);
}

template <class T>
class CudaTuckerConv final : public FusedTuckerConv {
 public:
  CudaTuckerConv(const TuckerConvShape& conv, const TuckerPlan& plan, bool wins, double flops)
      : conv_(conv), plan_(plan), wins_(wins), forward_flops_(flops) {}

  bool predicted_to_win() const override { return wins_; }
  double flops() const override { return forward_flops_; }

  void forward(const TuckerConvTensors& operands, const Tensor& residual, bool relu, const Tensor& y, const Tensor& narrow_in,
               const Tensor& narrow_out) const override {
    ChainArguments<T> args;
    args.shape = chain_shape(conv_, false, plan_.forward.tile_h, plan_.forward.tile_w);
    args.x = operands.x.data<T>();
    args.in_factor = pointer<float>(operands.in_factor);
    args.core = operands.core.data<float>();
    args.out_factor = pointer<float>(operands.out_factor);
    args.bias = pointer<float>(operands.bias);
    args.residual = pointer<T>(residual);
    args.y = y.data<T>();
    args.narrow_in = pointer<T>(narrow_in);
    args.narrow_out = pointer<T>(narrow_out);
    args.relu = relu;
    set_vectors(args);
    run(args, plan_.forward.block, y.device());
  }

  void backward(const TuckerConvTensors& operands, const Tensor& narrow_in, const Tensor& narrow_out, const Tensor& grad_y,
                const TuckerConvTensors& grads) const override {
    const Shape& x = operands.x.shape();
    const Shape& y = grad_y.shape();
    // Gradients of the narrow images. Only those that the gradient of a weight reads are allocated.
    Tensor grad_in, grad_out;
    if (grads.in_factor.defined()) grad_in = Tensor::empty({x[0], x[1], x[2], conv_.rank_in}, grad_y.dtype(), grad_y.device());
    if (grads.core.defined() && operands.out_factor.defined()) {
      grad_out = Tensor::empty({y[0], y[1], y[2], conv_.rank_out}, grad_y.dtype(), grad_y.device());
    }
    if (grads.x.defined() || grad_in.defined() || grad_out.defined()) {
      backward_input(operands, grad_y, grads.x, grad_in, grad_out);
    }
    if (!grads.in_factor.defined() && !grads.core.defined() && !grads.out_factor.defined() && !grads.bias.defined()) return;
    const Tensor& right = operands.in_factor.defined() ? narrow_in : operands.x;
    const Tensor& left = operands.out_factor.defined() ? grad_out : grad_y;
    const std::vector<Pair> pairs = pairs_of({{left, right}, {grad_in, operands.x}, {grad_y, narrow_out}});
    backward_weights(pairs, grads, grad_y.device());
  }

 private:
  struct Pair {
    Tensor left, right;
  };

  // Orders the pairs as correlation_shapes() does.
  std::vector<Pair> pairs_of(const std::vector<Pair>& all) const {
    std::vector<Pair> pairs{all[0]};
    if (conv_.in_factor) pairs.push_back(all[1]);
    if (conv_.out_factor) pairs.push_back(all[2]);
    return pairs;
  }

  static Tensor transposed(const Tensor& weight, Transposition& job) {
    if (!weight.defined()) return {};
    const Tensor result = Tensor::empty_like(weight);
    job = {weight.data<float>(), result.data<float>(), static_cast<int>(weight.dim(0)),
           static_cast<int>(weight.dim(1) * weight.dim(2)), static_cast<int>(weight.dim(3))};
    return result;
  }

  void backward_input(const TuckerConvTensors& operands, const Tensor& grad_y, const Tensor& grad_x, const Tensor& grad_in,
                      const Tensor& grad_out) const {
    Transpositions jobs;
    const Tensor core = transposed(operands.core, jobs.of[0]);
    const Tensor in_factor = transposed(operands.in_factor, jobs.of[1]);
    const Tensor out_factor = transposed(operands.out_factor, jobs.of[2]);
    launch_transpositions(jobs, grad_y.device());
    ChainArguments<T> args;
    args.shape = chain_shape(conv_, true, plan_.backward.tile_h, plan_.backward.tile_w);
    args.x = grad_y.data<T>();
    args.in_factor = pointer<float>(out_factor);
    args.core = core.data<float>();
    args.out_factor = pointer<float>(in_factor);
    args.y = pointer<T>(grad_x);
    args.narrow_in = pointer<T>(grad_out);
    args.narrow_out = pointer<T>(grad_in);
    set_vectors(args);
    run(args, plan_.backward.block, grad_y.device());
  }

  void backward_weights(const std::vector<Pair>& pairs, const TuckerConvTensors& grads, Device device) const {
    const std::vector<CorrelationShape> shapes = correlation_shapes(conv_);
    CorrelateArguments<T> args;
    PartialSums sums;
    std::vector<Tensor> results{grads.core};
    if (conv_.in_factor) results.push_back(grads.in_factor);
    if (conv_.out_factor) results.push_back(grads.out_factor);
    std::int64_t size = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const CorrelationShape& shape = shapes[i];
      const T* const left = pointer<T>(pairs[i].left);
      const T* const right = pointer<T>(pairs[i].right);
      // The bias is summed from grad_y, the left image of the out factor's correlation or, without an out factor, of the core's.
      const bool bias = grads.bias.defined() && (conv_.out_factor ? i + 1 == shapes.size() : i == 0);
      if (results[i].defined() || bias) {
        args.jobs[args.count++] = {shape, left, right, in_vectors(left, shape.a), in_vectors(right, shape.b), bias, size};
        size += std::int64_t{shape.a} * shape.taps() * shape.b;
      }
      sums.to[i] = pointer<float>(results[i]);
      sums.end[i] = size;
    }
    for (std::size_t i = shapes.size(); i < 3; ++i) sums.end[i] = size;
    args.bias_begin = size;
    sums.to[3] = pointer<float>(grads.bias);
    sums.end[3] = size + (grads.bias.defined() ? conv_.out : 0);
    args.partial_size = sums.end[3];
    const Tensor partials = Tensor::empty({plan_.walkers, args.partial_size}, DType::f32, device);
    args.partials = partials.data<float>();
    correlate(args, conv_.math, plan_.walkers, device);
    sums.partials = args.partials;
    sums.walkers = plan_.walkers;
    launch_partial_sums(sums, device);
  }

  TuckerConvShape conv_;
  TuckerPlan plan_;
  bool wins_;
  double forward_flops_;
};

TuckerConvShape shape_of(const TuckerConvTensors& operands, const Conv2dOptions& options, TuckerMath math) {
  const Tensor& x = operands.x;
  const Tensor& core = operands.core;
  return {.images = x.dim(0), .h = x.dim(1), .w = x.dim(2), .in = x.dim(3), .rank_in = core.dim(3), .rank_out = core.dim(0),
          .out = operands.out_factor.defined() ? operands.out_factor.dim(0) : core.dim(0),
          .kernel = {core.dim(1), core.dim(2)}, .stride = options.stride, .padding = options.padding,
          .in_factor = operands.in_factor.defined(), .out_factor = operands.out_factor.defined(), .math = math};
}

std::shared_ptr<const FusedTuckerConv> planned(const TuckerConvTensors& operands, const Conv2dOptions& options, TuckerMath math,
                                               bool training, std::string& reason) {
  const TuckerConvShape conv = shape_of(operands, options, math);
  const Device device = operands.x.device();
  const TuckerPlanning planning = plan_tucker_conv(conv, training, limits_of(device));
  reason = planning.reason;
  return planning.plan ? fused_tucker_conv(conv, *planning.plan, planning.wins, device) : nullptr;
}

}  // namespace

std::shared_ptr<const FusedTuckerConv> fused_tucker_conv(const TuckerConvShape& conv, const TuckerPlan& plan, bool wins,
                                                         Device device) {
  const double flops = unfused_estimate(conv, false, limits_of(device)).flops;
  switch (conv.math) {
    case TuckerMath::bf16: return std::make_shared<CudaTuckerConv<bfloat16>>(conv, plan, wins, flops);
    case TuckerMath::f16: return std::make_shared<CudaTuckerConv<float16>>(conv, plan, wins, flops);
    default: return std::make_shared<CudaTuckerConv<float>>(conv, plan, wins, flops);
  }
}

std::shared_ptr<const FusedTuckerConv> fused_tucker_conv(const TuckerConvTensors& operands, const Conv2dOptions& options,
                                                         bool training, std::string& reason) {
  if (options.dilation != Extent{1, 1} || options.groups != 1) {
    reason = str("the core has dilation ", options.dilation, " and groups ", options.groups, "; the kernels take 1x1 and 1");
    return nullptr;
  }
  switch (operands.x.dtype()) {
    case DType::f32:
      return planned(operands, options, tf32_products() ? TuckerMath::tf32 : TuckerMath::f32, training, reason);
    case DType::bf16: return planned(operands, options, TuckerMath::bf16, training, reason);
    case DType::f16: return planned(operands, options, TuckerMath::f16, training, reason);
    default: reason = str("there are no kernels for ", name_of(operands.x.dtype())); return nullptr;
  }
}

}  // namespace tessera::cuda
