#include "core/cuda/libraries/blas.h"

#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <map>

#include "core/cuda/libraries/blas_handle.h"
#include "core/cuda/libraries/epilogue.h"
#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/range.h"
#include "core/device/decisions.h"
#include "core/device/device_choice.h"
#include "core/device/device_info.h"
#include "core/device/plan_cache.h"
#include "core/device/precision.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

// NVIDIA's advice for Hopper; more gains nothing.
constexpr std::size_t kWorkspace = std::size_t{32} << 20;
constexpr int kMostProposals = 8;
// Of all operands of a product for which the library's fastest kernels are offered; our blocks lie on 512 bytes.
constexpr std::int64_t kFullAlignment = 16;

thread_local std::map<std::string, std::size_t> runs;

struct Sizes {
  std::int64_t batch, m, n, k;
};

// Everything that a plan depends on.
struct Request {
  Device device;
  Sizes sizes;
  DType factors, result;
  bool transpose_a, transpose_b, tf32;
  cublasLtEpilogue_t epilogue;
  std::int64_t alignment;
};

cublasComputeType_t compute_type(const Request& r) {
  if (r.factors == DType::f64) return CUBLAS_COMPUTE_64F;
  return r.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

template <class Value>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)), "matmul");
}
template <class Value>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
  check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof(value)), "matmul");
}
template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)), "matmul");
}

// The library counts in columns: our row-major [rows, columns] is its [columns, rows].
Layout make_layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, blas_type(dtype), static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), columns),
        "matmul");
  Layout owned(layout);
  set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
  set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, static_cast<std::int64_t>(rows * columns));
  return owned;
}

// 0 for what an algorithm does not have.
template <class Value>
Value configured(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  Value value{};
  std::size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : Value{};
}

// What tells algorithms apart, the same in every run: "lt66 tile20 stages35 split1 swizzle0 option0 inner0 cluster2".
std::string name_of(const cublasLtMatmulAlgo_t& algorithm) {
  return str("lt", configured<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID), " tile",
             configured<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID), " stages",
             configured<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID), " split",
             configured<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM), " swizzle",
             configured<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING), " option",
             configured<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION), " inner",
             configured<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID), " cluster",
             configured<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

struct Proposal {
  std::string name;
  cublasLtMatmulAlgo_t algorithm;
  std::size_t workspace;
};

// The library's A is our b: y' = op(b)' op(a)' in its columns.
class Plan {
 public:
  explicit Plan(const Request& r)
      : device_(r.device), in_double_(r.factors == DType::f64), epilogue_(r.epilogue), operation_(make_operation(r)) {
    const auto [batch, m, n, k] = r.sizes;
    a_ = r.transpose_a ? make_layout(r.factors, k, m, batch) : make_layout(r.factors, m, k, batch);
    b_ = r.transpose_b ? make_layout(r.factors, n, k, batch) : make_layout(r.factors, k, n, batch);
    y_ = make_layout(r.result, m, n, batch);
  }

  // Those that add up in an order of their own: parts of k by atomics (in place) or rounded to the result's dtype are refused.
  std::vector<Proposal> proposals(const Request& r, const void* bias, const char* operation) const {
    const auto preference = make_preference(r);
    if (epilogue_ != CUBLASLT_EPILOGUE_DEFAULT && epilogue_ != CUBLASLT_EPILOGUE_RELU) point_bias(bias);
    cublasLtMatmulHeuristicResult_t results[kMostProposals];
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(blas_handle(device_), operation_.get(), b_.get(), a_.get(), y_.get(), y_.get(),
                                       preference.get(), kMostProposals, results, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
      forget_error();
      return {};
    }
    check(status, operation);
    std::vector<Proposal> all;
    for (const auto& result : std::span(results, static_cast<std::size_t>(count))) {
      if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kWorkspace) continue;
      Proposal proposal{name_of(result.algo), result.algo, result.workspaceSize};
      const bool known = std::ranges::any_of(all, [&](const Proposal& other) { return other.name == proposal.name; });
      if (!known) all.push_back(std::move(proposal));
    }
    return all;
  }

  void run(const Proposal& proposal, const Product& p, void* bias, const char* operation) const {
    const Range range(operation);
    if (bias != nullptr) point_bias(bias);
    const Tensor workspace = Tensor::empty({static_cast<std::int64_t>(proposal.workspace)}, DType::u8, device_);
    const double one = 1, zero = 0;
    const float single_one = 1, single_zero = 0;
    const void* const alpha = in_double_ ? static_cast<const void*>(&one) : &single_one;
    const void* const beta = in_double_ ? static_cast<const void*>(&zero) : &single_zero;
    check(cublasLtMatmul(blas_handle(device_), operation_.get(), alpha, p.b.raw(), b_.get(), p.a.raw(), a_.get(), beta, p.y.raw(),
                         y_.get(), p.y.raw(), y_.get(), &proposal.algorithm, workspace.raw(), proposal.workspace,
                         stream_of(device_)),
          operation);
  }

  Proposal chosen{};

 private:
  static Operation make_operation(const Request& r) {
    cublasLtMatmulDesc_t desc = nullptr;
    check(cublasLtMatmulDescCreate(&desc, compute_type(r), r.factors == DType::f64 ? CUDA_R_64F : CUDA_R_32F), "matmul");
    Operation owned(desc);
    set(desc, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<std::int32_t>(r.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(desc, CUBLASLT_MATMUL_DESC_TRANSB, static_cast<std::int32_t>(r.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(r.epilogue));
    return owned;
  }

  static Preference make_preference(const Request& r) {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), "matmul");
    Preference owned(made);
    set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspace});
    set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                 CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(made, attribute, static_cast<std::uint32_t>(r.alignment));
    }
    return owned;
  }

  void point_bias(const void* bias) const { set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

  Device device_;
  bool in_double_;
  cublasLtEpilogue_t epilogue_;
  Operation operation_;
  Layout a_, b_, y_;
};

std::int64_t alignment_of(const Tensor& x) {
  if (!x.defined()) return kFullAlignment;
  const auto address = std::bit_cast<std::uintptr_t>(x.raw()) | std::uintptr_t{kFullAlignment};
  return std::int64_t{1} << std::countr_zero(address);
}

// "cuda.matmul m1024 n64 k576 b1 ta0 tb1 bf16>bf16 bias relu sm90x132x3352"
std::string decision_key(const Request& r) {
  const auto [batch, m, n, k] = r.sizes;
  const char* const epilogue = r.epilogue == CUBLASLT_EPILOGUE_BIAS        ? " bias"
                               : r.epilogue == CUBLASLT_EPILOGUE_RELU      ? " relu"
                               : r.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ? " bias relu"
                               : r.epilogue == CUBLASLT_EPILOGUE_BGRADB    ? " sums"
                                                                           : "";
  return str("cuda.matmul m", m, " n", n, " k", k, " b", batch, " ta", static_cast<int>(r.transpose_a), " tb",
             static_cast<int>(r.transpose_b), ' ', r.factors, '>', r.result, r.tf32 ? " tf32" : "", epilogue,
             r.alignment < kFullAlignment ? str(" aligned", r.alignment) : std::string(), ' ', chip_name(r.device));
}

std::vector<std::int64_t> key_of(const Request& r) {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  return {r.device.index(), r.sizes.batch, r.sizes.m, r.sizes.n,  r.sizes.k,   number(r.factors),       number(r.result),
          r.transpose_a,    r.transpose_b, r.tf32,    r.epilogue, r.alignment, number(decision_epoch())};
}

std::shared_ptr<Plan> build(const Request& r, const Product& p, void* bias, const char* operation) {
  auto plan = std::make_shared<Plan>(r);
  std::vector<Proposal> all = plan->proposals(r, bias, operation);
  if (all.empty()) return nullptr;
  const double flops = 2.0 * static_cast<double>(r.sizes.batch * r.sizes.m * r.sizes.n) * static_cast<double>(r.sizes.k);
  std::size_t chosen = 0;
  if (flops >= kLeastFlopsToMeasure) {
    std::vector<std::string> names;
    for (const Proposal& proposal : all) names.push_back(proposal.name);
    chosen = choose_on(r.device, decision_key(r), names, [&](std::size_t i) { plan->run(all[i], p, bias, operation); });
  }
  plan->chosen = std::move(all[chosen]);
  return plan;
}

// False where the library has no algorithm with this epilogue; nothing is written then.
bool multiply_by_library(const Product& p, const Sizes& sizes, cublasLtEpilogue_t epilogue, const Tensor& bias,
                         const char* operation) {
  thread_local PlanCache<Plan> cache;
  const std::int64_t alignment = std::min({alignment_of(p.a), alignment_of(p.b), alignment_of(p.y), alignment_of(bias)});
  const Request request{p.y.device(),
                        sizes,
                        p.a.dtype(),
                        p.y.dtype(),
                        p.transpose_a,
                        p.transpose_b,
                        tf32_products() && p.a.dtype() == DType::f32,
                        epilogue,
                        alignment};
  void* const vector = bias.defined() ? bias.raw() : nullptr;
  const auto plan = cache.get(key_of(request), [&] { return build(request, p, vector, operation); });
  if (!plan) return false;
  ++runs[plan->chosen.name];
  plan->run(plan->chosen, p, vector, operation);
  return true;
}

// With the bias and the rectifier in the product where the library has it so, otherwise behind it.
bool multiply_and_finish(const Product& p, const Sizes& sizes, const char* operation) {
  const bool fits = p.bias.defined() && p.bias.dtype() == p.y.dtype() && alignment_of(p.bias) == kFullAlignment;
  if (fits && multiply_by_library(p, sizes, p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS, p.bias, operation)) {
    return true;
  }
  if (!p.bias.defined() && p.relu && multiply_by_library(p, sizes, CUBLASLT_EPILOGUE_RELU, {}, operation)) return true;
  if (!multiply_by_library(p, sizes, CUBLASLT_EPILOGUE_DEFAULT, {}, operation)) return false;
  finish_product(p.y, p.bias, {}, p.relu);
  return true;
}

// Sums that the library takes along the way read a once less; in f32 it would round them to the product's precision.
bool multiply_with_sums(const Product& p, const Sizes& sizes, const char* operation) {
  if (!is_half(p.a.dtype()) || p.row_sums.dtype() != p.y.dtype() || alignment_of(p.row_sums) < kFullAlignment) return false;
  return multiply_by_library(p, sizes, CUBLASLT_EPILOGUE_BGRADB, p.row_sums, operation);
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
  const Sizes sizes{p.y.dim(0), p.y.dim(1), p.y.dim(2), p.a.dim(p.transpose_a ? 1 : 2)};
  const bool nothing = p.y.numel() == 0 || sizes.k == 0;
  if (!nothing && p.row_sums.defined() && multiply_with_sums(p, sizes, operation)) return;
  if (p.row_sums.defined()) column_sums(p.a.reshape({p.a.dim(1), p.a.dim(2)}), p.row_sums);
  if (p.y.numel() == 0) return;
  if (nothing) {
    p.y.fill(0);
    return finish_product(p.y, p.bias, {}, p.relu);
  }
  if (multiply_and_finish(p, sizes, operation)) return;
  TESSERA_CHECK(is_half(p.a.dtype()), DeviceError, operation, ": cuBLASLt has no algorithm for a ", describe(p.a), " and b ",
                describe(p.b));
  const Tensor wide = Tensor::empty(p.y.shape(), DType::f32, p.y.device());
  multiply({p.a.to(DType::f32), p.b.to(DType::f32), wide, p.transpose_a, p.transpose_b}, operation);
  p.y.copy_from(wide);
  finish_product(p.y, p.bias, {}, p.relu);
}

}  // namespace tessera::cuda
