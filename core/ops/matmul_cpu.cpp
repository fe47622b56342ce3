#include "core/cpu/onednn.h"
#include "core/cpu/reference/matmul.h"
#include "core/ops/matmul.h"

namespace tessera::cpu {
namespace {

using reference::MatmulSizes;
using Dims = dnnl::memory::dims;

// Strides of op(x) for x [batch, rows, columns] stored row-major.
Dims strides_of(const Tensor& x, bool transposed) {
  const std::int64_t rows = x.dim(1);
  const std::int64_t columns = x.dim(2);
  return transposed ? Dims{rows * columns, 1, columns} : Dims{rows * columns, columns, 1};
}

// A batch of one is described as plain matrices: oneDNN's 2-D kernels are its best tuned.
dnnl::memory::desc describe_matrix(Dims sizes, Dims strides) {
  if (sizes[0] == 1) return onednn::strided({sizes[1], sizes[2]}, {strides[1], strides[2]});
  return onednn::strided(sizes, strides);
}

std::unique_ptr<onednn::Primitive> build(const MatmulSizes& s, const Dims& a_strides, const Dims& b_strides) {
  const auto a = describe_matrix({s.batch, s.m, s.k}, a_strides);
  const auto b = describe_matrix({s.batch, s.k, s.n}, b_strides);
  const auto y = describe_matrix({s.batch, s.m, s.n}, {s.m * s.n, s.n, 1});
  return onednn::build_or_null([&] {
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a, b, y), onednn::attributes(), onednn::engine());
    return std::make_unique<onednn::Primitive>(dnnl::matmul(chosen), chosen.scratchpad_desc(),
                                               std::vector<onednn::Operand>{{DNNL_ARG_SRC, a, chosen.src_desc()},
                                                                            {DNNL_ARG_WEIGHTS, b, chosen.weights_desc()},
                                                                            {DNNL_ARG_DST, y, chosen.dst_desc(), true}});
  });
}

bool multiply_onednn(const MatmulSizes& s, const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  thread_local onednn::PlanCache<onednn::Primitive> cache;
  const auto plan = cache.get({s.batch, s.m, s.n, s.k, options.transpose_a, options.transpose_b},
                              [&] { return build(s, strides_of(a, options.transpose_a), strides_of(b, options.transpose_b)); });
  if (plan) plan->execute({a.raw(), b.raw(), y.raw()});
  return plan != nullptr;
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  const MatmulSizes sizes{y.dim(0), y.dim(1), y.dim(2), a.dim(options.transpose_a ? 1 : 2)};
  if (y.numel() == 0) return;
  if (sizes.k == 0) return y.fill(0);
  if (y.dtype() == DType::f32 && multiply_onednn(sizes, a, b, y, options)) return;
  const Dims sa = strides_of(a, options.transpose_a);
  const Dims sb = strides_of(b, options.transpose_b);
  dispatch_real(y.dtype(), "matmul", [&]<class T>() {
    reference::matmul<T>(sizes, {a.data<T>(), sa[0], sa[1], sa[2]}, {b.data<T>(), sb[0], sb[1], sb[2]}, nullptr,
                         {y.data<T>(), sizes.m * sizes.n, sizes.n, 1});
  });
}

}  // namespace tessera::cpu
