#include "core/ops/strided_matmul.h"

#include <string_view>

#include "core/cpu/onednn.h"
#include "core/cpu/parallel.h"
#include "core/cpu/reference/matmul.h"

namespace tessera::cpu {
namespace {

dnnl::memory::desc describe(std::int64_t batch, std::int64_t rows, std::int64_t columns, const MatrixStrides& s) {
  if (batch == 1) return onednn::strided({rows, columns}, {s.row, s.column});
  if (s.batch == 0) return onednn::strided({1, rows, columns}, {rows * columns, s.row, s.column});
  return onednn::strided({batch, rows, columns}, {s.batch, s.row, s.column});
}

// Null if oneDNN has only its reference loops, which are a hundred times slower than its products.
std::unique_ptr<onednn::Primitive> build(const StridedProduct& p) {
  return onednn::build_or_null([&]() -> std::unique_ptr<onednn::Primitive> {
    const auto a = describe(p.batch, p.m, p.k, p.a), b = describe(p.batch, p.k, p.n, p.b), y = describe(p.batch, p.m, p.n, p.y);
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a, b, y), onednn::attributes(), onednn::engine());
    if (std::string_view(chosen.impl_info_str()).starts_with("ref")) return nullptr;
    return std::make_unique<onednn::Primitive>(
        dnnl::matmul(chosen), chosen.scratchpad_desc(),
        std::vector<onednn::Operand>{{DNNL_ARG_SRC, a, a}, {DNNL_ARG_WEIGHTS, b, b}, {DNNL_ARG_DST, y, y, true}});
  });
}

void one_by_one(const StridedProduct& p, const float* a, const float* b, float* y) {
  const bool ta = p.a.column != 1, tb = p.b.column != 1;
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const dnnl_status_t status =
        dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', p.m, p.n, p.k, 1.0f, a + i * p.a.batch, ta ? p.a.column : p.a.row,
                   b + i * p.b.batch, tb ? p.b.column : p.b.row, 0.0f, y + i * p.y.batch, p.y.row);
    if (status != dnnl_success) onednn::fail(status, str("matmul: sgemm of [", p.m, ", ", p.k, "] x [", p.k, ", ", p.n, ']'));
  }
}

void multiply_f32(const StridedProduct& p, const float* a, const float* b, float* y) {
  struct Plan {
    std::unique_ptr<onednn::Primitive> primitive;
  };
  if (p.flops() < kLeastFlopsForThreads) {
    const OneThread alone;
    return one_by_one(p, a, b, y);
  }
  thread_local onednn::PlanCache<Plan> cache;
  const auto plan = cache.get(
      {p.batch, p.m, p.n, p.k, p.a.batch, p.a.row, p.a.column, p.b.batch, p.b.row, p.b.column, p.y.batch, p.y.row, p.y.column},
      [&] { return std::make_shared<Plan>(Plan{build(p)}); });
  if (!plan->primitive) return one_by_one(p, a, b, y);
  plan->primitive->execute({const_cast<float*>(a), const_cast<float*>(b), y});
}

}  // namespace

void strided_matmul(const StridedProduct& p, const StridedOperands& operands) {
  const auto [device, dtype, a, b, y] = operands;
  if (dtype == DType::f64) {
    const auto view = [](auto* data, const MatrixStrides& s) {
      return reference::MatrixView<std::remove_pointer_t<decltype(data)>>{data, s.batch, s.row, s.column};
    };
    return reference::matmul<double>({p.batch, p.m, p.n, p.k}, view(static_cast<const double*>(a), p.a),
                                     view(static_cast<const double*>(b), p.b), nullptr, view(static_cast<double*>(y), p.y));
  }
  TESSERA_CHECK(dtype == DType::f32, DTypeError, "strided_matmul: dtype is ", dtype, "; needs f32 or f64");
  multiply_f32(regular(p), static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(y));
}

}  // namespace tessera::cpu
