#include "core/ops/tucker_conv.h"

#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/autograd/backward.h"
#include "core/device/decisions.h"
#include "core/device/device_choice.h"
#include "core/device/device_info.h"
#include "core/device/dispatch.h"
#include "core/device/precision.h"
#include "core/ops/arithmetic.h"
#include "core/ops/dense_operands.h"
#include "core/ops/relu.h"
#include "core/support/log.h"

namespace tessera {
namespace {

struct Operands {
  const Var &x, &in_factor, &core, &out_factor, &bias;
};

Tensor contiguous_or_none(const Var& v) { return v.defined() ? v.value().contiguous() : Tensor(); }

TuckerConvTensors tensors_of(const Operands& o) {
  return {contiguous_or_none(o.x), contiguous_or_none(o.in_factor), contiguous_or_none(o.core), contiguous_or_none(o.out_factor),
          contiguous_or_none(o.bias)};
}

// The last of the three convolutions, without its bias.
struct Last {
  Var input, filters;
  Conv2dOptions options;
};

Last up_to_last(const Operands& o, const Conv2dOptions& options) {
  const Var narrow = o.in_factor.defined() ? conv2d(o.x, o.in_factor, Var(), {}) : o.x;
  if (!o.out_factor.defined()) return {narrow, o.core, options};
  return {conv2d(narrow, o.core, Var(), options), o.out_factor, {}};
}

Var three_convolutions(const Operands& o, const Conv2dOptions& options) {
  const auto [input, filters, last] = up_to_last(o, options);
  return conv2d(input, filters, o.bias, last);
}

bool needs_gradient(const Operands& o) {
  if (!grad_enabled()) return false;
  for (const Var* v : {&o.x, &o.in_factor, &o.core, &o.out_factor, &o.bias}) {
    if (v->defined() && v->requires_grad()) return true;
  }
  return false;
}

// Shapes of the images after each convolution.
struct Images {
  Shape narrow_in, narrow_out, y;
};

Images checked_shapes(const Operands& o, const Conv2dOptions& options) {
  for (const Var* v : {&o.in_factor, &o.core, &o.out_factor, &o.bias}) {
    if (v->defined()) check_parameters("tucker2_conv2d", {"x", o.x.value()}, {{"weight", v->value()}});
  }
  Images images;
  images.narrow_in = o.in_factor.defined() ? conv2d_output_shape(o.x.shape(), o.in_factor.shape()) : o.x.shape();
  images.narrow_out = conv2d_output_shape(images.narrow_in, o.core.shape(), options);
  images.y = o.out_factor.defined() ? conv2d_output_shape(images.narrow_out, o.out_factor.shape()) : images.narrow_out;
  TESSERA_CHECK(!o.bias.defined() || o.bias.shape() == Shape{images.y[3]}, ShapeError,
                "tucker2_conv2d: bias does not fit: y is ", images.y, ", bias is ", o.bias.shape(), "; bias must be [y.dim(-1)]");
  return images;
}

class TuckerConvOp final : public Op {
 public:
  TuckerConvOp(std::shared_ptr<const FusedTuckerConv> kernels, TuckerConvTensors operands, Tensor narrow_in, Tensor narrow_out)
      : kernels_(std::move(kernels)), operands_(std::move(operands)), narrow_in_(std::move(narrow_in)),
        narrow_out_(std::move(narrow_out)) {}
  std::string_view name() const override { return "tucker2_conv2d"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    Grads grads;
    const auto wanted = [&](const Tensor& operand) {
      if (!operand.defined()) return Tensor();
      grads.push_back(needs[static_cast<int>(grads.size())] ? Tensor::empty_like(operand) : Tensor());
      return grads.back();
    };
    TuckerConvTensors all;
    all.x = wanted(operands_.x);
    all.in_factor = wanted(operands_.in_factor);
    all.core = wanted(operands_.core);
    all.out_factor = wanted(operands_.out_factor);
    all.bias = wanted(operands_.bias);
    const KernelTimer timer;
    kernels_->backward(operands_, narrow_in_, narrow_out_, grad_y, all);
    return grads;
  }

  std::int64_t multiply_adds(const Shape&) const override { return static_cast<std::int64_t>(kernels_->flops() / 2); }

 private:
  std::shared_ptr<const FusedTuckerConv> kernels_;
  TuckerConvTensors operands_;
  Tensor narrow_in_, narrow_out_;
};

Var fused(const std::shared_ptr<const FusedTuckerConv>& kernels, const Operands& o, const Images& images, const Var& residual,
          bool relu) {
  const TuckerConvTensors operands = tensors_of(o);
  Tensor y = Tensor::empty(images.y, o.x.dtype(), o.x.device());
  Tensor narrow_in, narrow_out;
  if (needs_gradient(o)) {
    if (o.in_factor.defined()) narrow_in = Tensor::empty(images.narrow_in, o.x.dtype(), o.x.device());
    if (o.out_factor.defined()) narrow_out = Tensor::empty(images.narrow_out, o.x.dtype(), o.x.device());
  }
  {
    const KernelTimer timer;
    kernels->forward(operands, contiguous_or_none(residual), relu, y, narrow_in, narrow_out);
  }
  std::vector<Var> inputs;
  for (const Var* v : {&o.x, &o.in_factor, &o.core, &o.out_factor, &o.bias}) {
    if (v->defined()) inputs.push_back(*v);
  }
  return record(std::make_unique<TuckerConvOp>(kernels, operands, narrow_in, narrow_out), inputs, std::move(y));
}

struct Choice {
  std::shared_ptr<const FusedTuckerConv> kernels;  // null: three convolutions
  std::string reason;
};

// Choices by device and key, under the decisions of `epoch`.
struct Choices {
  std::mutex mutex;
  std::uint64_t epoch = 0;
  std::map<std::pair<int, std::string>, Choice> of;  // the device's index, the decision's key
};
Choices& choices() {
  static Choices all;
  return all;
}

// "tucker2_conv2d f32 training sm90x132x3352 x[1, 14, 14, 128] core[32, 3, 3, 64] in out64 s1x1 p1x1 d1x1 g1"
std::string key_of(const Operands& o, const Conv2dOptions& options, bool training) {
  return str("tucker2_conv2d ", name_of(o.x.dtype()), tf32_products() ? " tf32" : "", training ? " training " : " ",
             TESSERA_BACKEND(o.x.device(), chip_name, o.x.device()), " x", o.x.shape(), " core", o.core.shape(),
             o.in_factor.defined() ? " in" : "", o.out_factor.defined() ? " out" : "",
             o.out_factor.defined() ? o.out_factor.shape()[0] : 0, " s", options.stride, " p", options.padding, " d",
             options.dilation, " g", options.groups);
}

// Queues one way of computing these operands, in training with its backward pass.
void run_once(const Operands& o, bool training, const std::function<Var(const Operands&)>& run) {
  const EnableGrad recording;
  // If no operand needs a gradient, all operands are treated as those of a training step.
  const bool all = !needs_gradient(o);
  const auto leaf = [&](const Var& v) { return v.defined() ? Var(v.value(), training && (all || v.requires_grad())) : Var(); };
  const Var x = leaf(o.x), in_factor = leaf(o.in_factor), core = leaf(o.core), out_factor = leaf(o.out_factor);
  const Var bias = leaf(o.bias);
  const Var y = run({x, in_factor, core, out_factor, bias});
  if (training) backward(y, Tensor::full(y.shape(), 1, y.dtype(), y.device()));
}

Choice decided(const std::string& key, const Operands& o, const Conv2dOptions& options, const Images& images, bool training) {
  Choice choice;
  const auto kernels = TESSERA_BACKEND(o.x.device(), fused_tucker_conv, tensors_of(o), options, training, choice.reason);
  if (!kernels) return choice;
  std::vector<std::string> names{"fused", "three"};
  if (!kernels->predicted_to_win()) std::swap(names[0], names[1]);
  std::size_t chosen = 0;
  if (kernels->flops() >= kLeastFlopsToMeasure) {
    chosen = choose_on(o.x.device(), key, names, [&](std::size_t i) {
      run_once(o, training, [&](const Operands& leaves) {
        return names[i] == "fused" ? fused(kernels, leaves, images, Var(), false) : three_convolutions(leaves, options);
      });
    });
  }
  if (names[chosen] == "fused") return {kernels, {}};
  if (choice.reason.empty()) choice.reason = "three convolutions were faster";
  return choice;
}

Choice choose(const Operands& o, const Conv2dOptions& options, const Images& images, bool training) {
  const std::string key = key_of(o, options, training);
  const std::pair here{o.x.device().index(), key};
  Choices& known = choices();
  {
    const std::lock_guard lock(known.mutex);
    if (known.epoch != decision_epoch()) known.of.clear();
    known.epoch = decision_epoch();
    if (const auto found = known.of.find(here); found != known.of.end()) return found->second;
  }
  Choice choice = decided(key, o, options, images, training);
  log(LogLevel::debug, str(key, choice.kernels ? ": fused" : str(": three convolutions: ", choice.reason)));
  if (recording_graph()) return choice;  // no clock was read, so the choice is not kept
  const std::lock_guard lock(known.mutex);
  known.of.insert_or_assign(here, choice);
  return choice;
}

}  // namespace

namespace cpu {

std::shared_ptr<const FusedTuckerConv> fused_tucker_conv(const TuckerConvTensors&, const Conv2dOptions&, bool,
                                                         std::string& reason) {
  reason = "on the CPU the three convolutions are the library's";
  return nullptr;
}

}  // namespace cpu

Var tucker2_conv2d(const Var& x, const Var& in_factor, const Var& core, const Var& out_factor, const Var& bias,
                   const Conv2dOptions& options) {
  const Operands operands{x, in_factor, core, out_factor, bias};
  if (x.device().is_cpu()) return three_convolutions(operands, options);
  const Images images = checked_shapes(operands, options);
  const Choice choice = choose(operands, options, images, needs_gradient(operands));
  if (!choice.kernels) return three_convolutions(operands, options);
  return fused(choice.kernels, operands, images, Var(), false);
}

Var tucker2_conv2d_relu(const Var& x, const Var& in_factor, const Var& core, const Var& out_factor, const Var& bias,
                        const Var& residual, const Conv2dOptions& options) {
  const Operands operands{x, in_factor, core, out_factor, bias};
  const auto three = [&] {
    const auto [input, filters, last] = up_to_last(operands, options);
    return conv2d_relu(input, filters, bias, residual, last);
  };
  if (x.device().is_cpu()) return three();
  const Images images = checked_shapes(operands, options);
  const Choice choice = choose(operands, options, images, needs_gradient(operands));
  if (!choice.kernels) return three();
  if (grad_enabled()) {
    const Var y = fused(choice.kernels, operands, images, Var(), false);
    return relu(residual.defined() ? add(y, residual) : y);
  }
  if (residual.defined()) {
    check_operands("tucker2_conv2d_relu", {{"x", x.value()}, {"residual", residual.value()}});
    TESSERA_CHECK(residual.shape() == images.y, ShapeError, "tucker2_conv2d_relu: residual does not fit: it is ",
                  residual.shape(), ", the convolution gives ", images.y, "; the shapes must be equal");
  }
  return fused(choice.kernels, operands, images, residual, true);
}

std::string tucker_conv_reason(const Var& x, const Var& in_factor, const Var& core, const Var& out_factor,
                               const Conv2dOptions& options, bool training) {
  const Var none;
  const Operands operands{x, in_factor, core, out_factor, none};
  return choose(operands, options, checked_shapes(operands, options), training).reason;
}

}  // namespace tessera
