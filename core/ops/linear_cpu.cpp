#include "core/cpu/onednn.h"
#include "core/cpu/reference/matmul.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"

namespace tessera::cpu {
namespace {

using Desc = dnnl::memory::desc;

Desc row_major(std::int64_t rows, std::int64_t columns) { return onednn::strided({rows, columns}, {columns, 1}); }

// Inner product with plain layouts: it reads the weights where they lie, while a matmul packs them, which for a single row costs as
// much as the product.
std::unique_ptr<onednn::Primitive> build_row_forward(std::int64_t in, std::int64_t out) {
  const Desc x = row_major(1, in);
  const Desc weight = row_major(out, in);
  const Desc bias = onednn::strided({out}, {1});
  const Desc y = row_major(1, out);
  return onednn::build_or_null([&] {
    using Forward = dnnl::inner_product_forward;
    const Forward::primitive_desc chosen(Forward::desc(dnnl::prop_kind::forward_inference, x, weight, bias, y),
                                         onednn::attributes(), onednn::engine());
    return std::make_unique<onednn::Primitive>(Forward(chosen), chosen.scratchpad_desc(),
                                               std::vector<onednn::Operand>{{DNNL_ARG_SRC, x, chosen.src_desc()},
                                                                            {DNNL_ARG_WEIGHTS, weight, chosen.weights_desc()},
                                                                            {DNNL_ARG_BIAS, bias, chosen.bias_desc()},
                                                                            {DNNL_ARG_DST, y, chosen.dst_desc(), true}});
  });
}

std::unique_ptr<onednn::Primitive> build_forward(std::int64_t rows, std::int64_t in, std::int64_t out) {
  if (rows == 1) return build_row_forward(in, out);
  const Desc x = row_major(rows, in);
  const Desc weight = onednn::strided({in, out}, {1, in});
  const Desc bias = row_major(1, out);
  const Desc y = row_major(rows, out);
  return onednn::build_or_null([&] {
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(x, weight, bias, y), onednn::attributes(), onednn::engine());
    return std::make_unique<onednn::Primitive>(dnnl::matmul(chosen), chosen.scratchpad_desc(),
                                               std::vector<onednn::Operand>{{DNNL_ARG_SRC, x, chosen.src_desc()},
                                                                            {DNNL_ARG_WEIGHTS, weight, chosen.weights_desc()},
                                                                            {DNNL_ARG_BIAS, bias, chosen.bias_desc()},
                                                                            {DNNL_ARG_DST, y, chosen.dst_desc(), true}});
  });
}

// Inner product with plain layouts: its weight gradient runs ahead of a matmul with a transposed operand.
std::unique_ptr<onednn::Primitive> build_backward_weight(std::int64_t rows, std::int64_t in, std::int64_t out, bool with_bias) {
  const Desc x = row_major(rows, in);
  const Desc weight = row_major(out, in);
  const Desc bias = with_bias ? onednn::strided({out}, {1}) : Desc();
  const Desc y = row_major(rows, out);
  return onednn::build_or_null([&] {
    using Forward = dnnl::inner_product_forward;
    using Backward = dnnl::inner_product_backward_weights;
    const Forward::primitive_desc hint(Forward::desc(dnnl::prop_kind::forward_training, x, weight, bias, y), onednn::engine());
    const Backward::primitive_desc chosen(Backward::desc(x, weight, bias, y), onednn::attributes(), onednn::engine(), hint);
    std::vector<onednn::Operand> operands{{DNNL_ARG_SRC, x, chosen.src_desc()},
                                          {DNNL_ARG_DIFF_DST, y, chosen.diff_dst_desc()},
                                          {DNNL_ARG_DIFF_WEIGHTS, weight, chosen.diff_weights_desc(), true}};
    if (with_bias) operands.push_back({DNNL_ARG_DIFF_BIAS, bias, chosen.diff_bias_desc(), true});
    return std::make_unique<onednn::Primitive>(Backward(chosen), chosen.scratchpad_desc(), operands);
  });
}

Tensor batch_of_one(const Tensor& x) { return x.reshape({1, x.dim(0), x.dim(1)}); }

bool forward_onednn(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y) {
  thread_local onednn::PlanCache<onednn::Primitive> cache;
  const auto plan = cache.get({x.dim(0), x.dim(1), y.dim(1)}, [&] { return build_forward(x.dim(0), x.dim(1), y.dim(1)); });
  if (plan) plan->execute({x.raw(), weight.raw(), bias.raw(), y.raw()});
  return plan != nullptr;
}

bool backward_weight_onednn(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias) {
  thread_local onednn::PlanCache<onednn::Primitive> cache;
  const bool with_bias = grad_bias.defined();
  const auto plan = cache.get({x.dim(0), x.dim(1), grad_y.dim(1), with_bias},
                              [&] { return build_backward_weight(x.dim(0), x.dim(1), grad_y.dim(1), with_bias); });
  if (!plan) return false;
  if (with_bias) {
    plan->execute({x.raw(), grad_y.raw(), grad_weight.raw(), grad_bias.raw()});
  } else {
    plan->execute({x.raw(), grad_y.raw(), grad_weight.raw()});
  }
  return true;
}

}  // namespace

void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y) {
  if (!bias.defined()) return matmul(batch_of_one(x), batch_of_one(weight), batch_of_one(y), {.transpose_b = true});
  if (y.numel() == 0) return;
  if (x.dim(1) == 0) return y.copy_from(bias.expand(y.shape()));
  if (y.dtype() == DType::f32 && forward_onednn(x, weight, bias, y)) return;
  dispatch_real(y.dtype(), "linear", [&]<class T>() {
    reference::matmul<T>({1, y.dim(0), y.dim(1), x.dim(1)}, {x.data<T>(), 0, x.dim(1), 1}, {weight.data<T>(), 0, 1, x.dim(1)},
                         bias.data<T>(), {y.data<T>(), 0, y.dim(1), 1});
  });
}

void linear_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x) {
  matmul(batch_of_one(grad_y), batch_of_one(weight), batch_of_one(grad_x), {});
}

void linear_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias) {
  const bool computable = x.numel() > 0 && grad_y.numel() > 0;
  if (computable && x.dtype() == DType::f32 && backward_weight_onednn(x, grad_y, grad_weight, grad_bias)) return;
  matmul(batch_of_one(grad_y), batch_of_one(x), batch_of_one(grad_weight), {.transpose_a = true});
  if (!grad_bias.defined()) return;
  dispatch_real(x.dtype(), "linear",
                [&]<class T>() { reference::column_sums(grad_y.dim(0), grad_y.dim(1), grad_y.data<T>(), grad_bias.data<T>()); });
}

}  // namespace tessera::cpu
