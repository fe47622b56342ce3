#include "core/cpu/cache_sweep.h"
#include "core/cpu/in_f32.h"
#include "core/cpu/onednn.h"
#include "core/cpu/panels/product.h"
#include "core/cpu/reference/matmul.h"
#include "core/device/decisions.h"
#include "core/ops/matmul.h"
#include "core/ops/matmul_plan_cpu.h"

namespace tessera::cpu {
namespace {

using reference::MatmulSizes;
using Dims = dnnl::memory::dims;

constexpr const char* kPanels = "panels";

thread_local std::map<std::string, std::size_t> runs;

// Strides of op(x) for x [batch, rows, columns] stored row-major.
Dims strides_of(const Tensor& x, bool transposed) {
  const std::int64_t rows = x.dim(1);
  const std::int64_t columns = x.dim(2);
  return transposed ? Dims{rows * columns, 1, columns} : Dims{rows * columns, columns, 1};
}

// If a or b is bf16, both are multiplied as bf16.
struct Dtypes {
  DType a, b, y;
  DType factors() const { return a == DType::bf16 || b == DType::bf16 ? DType::bf16 : DType::f32; }
  bool all(DType dtype) const { return a == dtype && b == dtype && y == dtype; }
};

// A batch of one is described as plain matrices: oneDNN's 2-D kernels are its best tuned.
dnnl::memory::desc describe_matrix(const Dims& sizes, const Dims& strides, DType dtype) {
  if (sizes[0] == 1) return onednn::strided({sizes[1], sizes[2]}, {strides[1], strides[2]}, dtype);
  return onednn::strided(sizes, strides, dtype);
}

std::unique_ptr<onednn::Primitive> build(const MatmulSizes& s, const Dims& a_strides, const Dims& b_strides,
                                         const Dtypes& dtypes) {
  const auto describe_a = [&](DType dtype) { return describe_matrix({s.batch, s.m, s.k}, a_strides, dtype); };
  const auto describe_b = [&](DType dtype) { return describe_matrix({s.batch, s.k, s.n}, b_strides, dtype); };
  const auto a = describe_a(dtypes.a);
  const auto b = describe_b(dtypes.b);
  const auto y = describe_matrix({s.batch, s.m, s.n}, {s.m * s.n, s.n, 1}, dtypes.y);
  return onednn::build_or_null([&] {
    const dnnl::matmul::desc wanted(describe_a(dtypes.factors()), describe_b(dtypes.factors()), y);
    const dnnl::matmul::primitive_desc chosen(wanted, onednn::attributes(), onednn::engine());
    return std::make_unique<onednn::Primitive>(dnnl::matmul(chosen), chosen.scratchpad_desc(),
                                               std::vector<onednn::Operand>{{DNNL_ARG_SRC, a, chosen.src_desc()},
                                                                            {DNNL_ARG_WEIGHTS, b, chosen.weights_desc()},
                                                                            {DNNL_ARG_DST, y, chosen.dst_desc(), true}});
  });
}

void sgemm(const MatmulSizes& s, const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  const auto [ta, tb] = options;
  const dnnl_status_t status = dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a.data<float>(), ta ? s.m : s.k,
                                          b.data<float>(), tb ? s.k : s.n, 0.0f, y.data<float>(), s.n);
  if (status == dnnl_success) return;
  onednn::fail(status, str("matmul: sgemm of [", s.m, ", ", s.k, "] x [", s.k, ", ", s.n, ']'));
}

Tensor as_matrix(const Tensor& x) { return x.reshape({x.dim(1), x.dim(2)}); }

void multiply_panels(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  panels::product(panels::kernels(), {as_matrix(a), as_matrix(b), options.transpose_b}, {}, as_matrix(y));
}

// A transposed a does not suit the panels: its rows are not contiguous.
bool suits_panels(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  return !options.transpose_a && panels::lays_out_smaller({as_matrix(a), as_matrix(b), options.transpose_b});
}

struct Plan {
  std::string algorithm;
  std::unique_ptr<onednn::Primitive> primitive;  // null: sgemm or panels, as `algorithm` says

  void run(const MatmulSizes& sizes, const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) const {
    if (primitive) return primitive->execute({a.raw(), b.raw(), y.raw()});
    algorithm == kPanels ? multiply_panels(a, b, y, options) : sgemm(sizes, a, b, y, options);
  }
};

// "matmul m1024 n64 k576 ta0 tb1 threads2"
std::string decision_key(const MatmulSizes& s, const MatmulOptions& options) {
  return str("matmul m", s.m, " n", s.n, " k", s.k, " ta", static_cast<int>(options.transpose_a), " tb",
             static_cast<int>(options.transpose_b), " threads", onednn::threads_now());
}

// Chooses among the primitive, sgemm and our panels. None of them is the fastest on every shape and processor.
std::shared_ptr<Plan> choose(const MatmulSizes& s, const Tensor& a, const Tensor& b, const Tensor& y,
                             const MatmulOptions& options) {
  std::vector<Plan> plans;
  const Dtypes dtypes{a.dtype(), b.dtype(), y.dtype()};
  if (auto primitive = build(s, strides_of(a, options.transpose_a), strides_of(b, options.transpose_b), dtypes)) {
    plans.push_back({"matmul", std::move(primitive)});
  }
  const double flops = 2.0 * static_cast<double>(s.m * s.n) * static_cast<double>(s.k);
  const bool choosing = dtypes.all(DType::f32) && s.batch == 1 && decisions_active() && flops >= kLeastFlopsToMeasure;
  if (choosing) plans.push_back({"sgemm", nullptr});
  if (choosing && suits_panels(a, b, options)) plans.push_back({kPanels, nullptr});
  if (plans.empty()) return nullptr;
  if (!choosing) return std::make_shared<Plan>(std::move(plans.front()));  // the key does not tell batches and dtypes apart
  std::vector<std::string> names;
  for (const Plan& plan : plans) names.push_back(plan.algorithm);
  const auto seconds = [&](std::size_t i) {
    flush_caches_of({&a, &b, &y});
    return seconds_of(i, [&] { plans[i].run(s, a, b, y, options); });
  };
  const std::size_t chosen = decide(decision_key(s, options), names, seconds);
  return std::make_shared<Plan>(std::move(plans[chosen]));
}

bool multiply_onednn(const MatmulSizes& s, const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  thread_local onednn::PlanCache<Plan> cache;
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const auto plan =
      cache.get({s.batch, s.m, s.n, s.k, options.transpose_a, options.transpose_b, number(a.dtype()), number(b.dtype()),
                 number(y.dtype()), number(decision_epoch())},
                [&] { return choose(s, a, b, y, options); });
  if (!plan) return false;
  ++runs[plan->algorithm];
  plan->run(s, a, b, y, options);
  return true;
}

}  // namespace

std::size_t matmul_runs(const std::string& algorithm) { return runs[algorithm]; }

void matmul(const Tensor& a, const Tensor& b, const Tensor& y, const MatmulOptions& options) {
  const MatmulSizes sizes{y.dim(0), y.dim(1), y.dim(2), a.dim(options.transpose_a ? 1 : 2)};
  if (y.numel() == 0) return;
  if (sizes.k == 0) return y.fill(0);
  if (y.dtype() != DType::f64 && multiply_onednn(sizes, a, b, y, options)) return;
  if (a.dtype() == DType::bf16 || b.dtype() == DType::bf16) {
    return in_f32([&](const Tensor& left, const Tensor& right, const Tensor& to) { matmul(left, right, to, options); }, y, a, b);
  }
  const Dims sa = strides_of(a, options.transpose_a);
  const Dims sb = strides_of(b, options.transpose_b);
  dispatch_real(y.dtype(), "matmul", [&]<class T>() {
    reference::matmul<T>(sizes, {a.data<T>(), sa[0], sa[1], sa[2]}, {b.data<T>(), sb[0], sb[1], sb[2]}, nullptr,
                         {y.data<T>(), sizes.m * sizes.n, sizes.n, 1});
  });
}

}  // namespace tessera::cpu
