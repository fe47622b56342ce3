#include "core/cuda/libraries/blas.h"

#include <algorithm>
#include <bit>
#include <map>

#include "core/cuda/kernel/alignment.h"
#include "core/cuda/libraries/blas_plan.h"
#include "core/cuda/libraries/epilogue.h"
#include "core/device/decisions.h"
#include "core/device/device_choice.h"
#include "core/device/plan_cache.h"
#include "core/device/precision.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

thread_local std::map<std::string, std::size_t> runs;

// A product without its epilogue, as the library sees it.
struct Call {
  StridedProduct product;  // after regular()
  Device device;
  DType factors, result;
  const void* a;
  const void* b;
  void* y;
};

Call call_of(const Product& p) {
  const auto strides = [](const Tensor& x, bool transposed) {
    const std::int64_t rows = x.dim(1), columns = x.dim(2);
    return transposed ? MatrixStrides{rows * columns, 1, columns} : MatrixStrides{rows * columns, columns, 1};
  };
  const StridedProduct product{.batch = p.y.dim(0),
                               .m = p.y.dim(1),
                               .n = p.y.dim(2),
                               .k = p.a.dim(p.transpose_a ? 1 : 2),
                               .a = strides(p.a, p.transpose_a),
                               .b = strides(p.b, p.transpose_b),
                               .y = strides(p.y, false)};
  return {regular(product), p.y.device(), p.a.dtype(), p.y.dtype(), p.a.raw(), p.b.raw(), p.y.raw()};
}

// The alignment in bytes that all matrices and the bias share, at most kFullAlignment. A missing bias counts as aligned.
std::int64_t alignment_of(const Call& c, const void* bias) {
  std::uintptr_t places = static_cast<std::uintptr_t>(kFullAlignment);
  for (const void* const place : {c.a, c.b, static_cast<const void*>(c.y), bias}) places |= std::bit_cast<std::uintptr_t>(place);
  if (c.product.batch > 1) {
    places |= static_cast<std::uintptr_t>(c.product.a.batch | c.product.b.batch) * size_of(c.factors);
    places |= static_cast<std::uintptr_t>(c.product.y.batch) * size_of(c.result);
  }
  return std::int64_t{1} << std::countr_zero(places);
}

std::shared_ptr<BlasPlan> build(const BlasRequest& r, const BlasOperands& operands, const char* operation) {
  auto plan = std::make_shared<BlasPlan>(r);
  std::vector<BlasPlan::Proposal> all = plan->proposals(r, operands.bias, operation);
  if (all.empty()) return nullptr;
  std::size_t chosen = 0;
  if (r.product.flops() >= kLeastFlopsToMeasure) {
    std::vector<std::string> names;
    for (const BlasPlan::Proposal& proposal : all) names.push_back(proposal.name);
    chosen = choose_on(r.device, decision_key(r), names, [&](std::size_t i) { plan->run(all[i], operands, operation); });
  }
  plan->chosen = std::move(all[chosen]);
  return plan;
}

// Returns false and writes nothing if the library has no algorithm with this epilogue.
bool multiply_by_library(const Call& c, cublasLtEpilogue_t epilogue, const Tensor& bias, const char* operation) {
  thread_local PlanCache<BlasPlan> cache;
  const BlasOperands operands{c.a, c.b, c.y, bias.defined() ? bias.raw() : nullptr};
  const bool tf32 = tf32_products() && c.factors == DType::f32;
  const BlasRequest request{c.device, c.product, c.factors, c.result, tf32, epilogue, alignment_of(c, operands.bias)};
  const auto plan = cache.get(cache_key(request), [&] { return build(request, operands, operation); });
  if (!plan) return false;
  ++runs[plan->chosen.name];
  plan->run(plan->chosen, operands, operation);
  return true;
}

// Adds the bias and applies the ReLU in the library's epilogue if it has that one, otherwise after the product.
bool multiply_and_finish(const Product& p, const Call& call, const char* operation) {
  const bool fits = p.bias.defined() && p.bias.dtype() == p.y.dtype() && is_aligned(p.bias.raw(), kFullAlignment);
  if (fits && multiply_by_library(call, p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS, p.bias, operation)) {
    return true;
  }
  if (!p.bias.defined() && p.relu && multiply_by_library(call, CUBLASLT_EPILOGUE_RELU, {}, operation)) return true;
  if (!multiply_by_library(call, CUBLASLT_EPILOGUE_DEFAULT, {}, operation)) return false;
  finish_product(p.y, p.bias, {}, p.relu);
  return true;
}

// With the sums in the library's epilogue, a is read once less. In f32 that would round them to the product's precision.
bool multiply_with_sums(const Product& p, const Call& call, const char* operation) {
  if (!is_half(p.a.dtype()) || p.row_sums.dtype() != p.y.dtype() || !is_aligned(p.row_sums.raw(), kFullAlignment)) return false;
  return multiply_by_library(call, CUBLASLT_EPILOGUE_BGRADB, p.row_sums, operation);
}

void check_product(const Product& p, const char* operation) {
  const bool halves_to_single = is_half(p.a.dtype()) && p.y.dtype() == DType::f32;
  TESSERA_CHECK(p.a.dtype() == p.b.dtype() && (p.y.dtype() == p.a.dtype() || halves_to_single), DTypeError, operation,
                ": dtypes do not fit: a is ", p.a.dtype(), ", b is ", p.b.dtype(), ", y is ", p.y.dtype(),
                "; a and b must be equal, y theirs or, beside half ones, f32");
  TESSERA_CHECK(!p.row_sums.defined() || (p.transpose_a && p.a.dim(0) == 1), InternalError, operation,
                ": row sums are those of one transposed a");
}

}  // namespace

std::size_t product_runs(const std::string& algorithm) { return runs[algorithm]; }

void multiply(const Product& p, const char* operation) {
  check_product(p, operation);
  const Call call = call_of(p);
  const bool nothing = p.y.numel() == 0 || call.product.k == 0;
  if (!nothing && p.row_sums.defined() && multiply_with_sums(p, call, operation)) return;
  if (p.row_sums.defined()) column_sums(p.a.reshape({p.a.dim(1), p.a.dim(2)}), p.row_sums);
  if (p.y.numel() == 0) return;
  if (nothing) {
    p.y.fill(0);
    return finish_product(p.y, p.bias, {}, p.relu);
  }
  if (multiply_and_finish(p, call, operation)) return;
  TESSERA_CHECK(is_half(p.a.dtype()), DeviceError, operation, ": cuBLASLt has no algorithm for a ", describe(p.a), " and b ",
                describe(p.b));
  const Tensor wide = Tensor::empty(p.y.shape(), DType::f32, p.y.device());
  multiply({p.a.to(DType::f32), p.b.to(DType::f32), wide, p.transpose_a, p.transpose_b}, operation);
  p.y.copy_from(wide);
  finish_product(p.y, p.bias, {}, p.relu);
}

void multiply(const StridedProduct& product, const StridedOperands& o, const char* operation) {
  const Call call{regular(product), o.device, o.dtype, o.dtype, o.a, o.b, o.y};
  TESSERA_CHECK(multiply_by_library(call, CUBLASLT_EPILOGUE_DEFAULT, {}, operation), DeviceError, operation,
                ": cuBLASLt has no algorithm for ", product.batch, " products [", product.m, ", ", product.k, "] x [", product.k,
                ", ", product.n, "] of ", o.dtype, " with strides");
}

}  // namespace tessera::cuda
