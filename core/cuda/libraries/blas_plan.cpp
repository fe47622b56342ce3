#include "core/cuda/libraries/blas_plan.h"

#include <algorithm>
#include <span>

#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/range.h"
#include "core/device/decisions.h"
#include "core/device/device_info.h"
#include "core/support/error.h"
#include "core/tensor.h"

namespace tessera::cuda {
namespace {

// In bytes, as NVIDIA advises for Hopper. More gains nothing.
constexpr std::size_t kWorkspace = std::size_t{32} << 20;
constexpr int kMostProposals = 8;

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

// Row-major matrices [rows, columns] in memory. Rows are `lead` elements apart, matrices `apart` elements.
struct Stored {
  bool transposed;  // the product reads the transpose
  std::int64_t rows, columns, lead, apart;

  bool without_gaps(std::int64_t batch) const { return lead == columns && (batch == 1 || apart == rows * columns); }
};

Stored stored(const MatrixStrides& s, std::int64_t rows, std::int64_t columns) {
  if (s.column == 1) return {false, rows, columns, s.row, s.batch};
  return {true, columns, rows, s.column, s.batch};
}
Stored stored_a(const StridedProduct& p) { return stored(p.a, p.m, p.k); }
Stored stored_b(const StridedProduct& p) { return stored(p.b, p.k, p.n); }
Stored stored_y(const StridedProduct& p) { return stored(p.y, p.m, p.n); }

// The library is column-major: our row-major [rows, columns] is its [columns, rows].
Layout make_layout(DType dtype, const Stored& matrices, std::int64_t batch) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, blas_type(dtype), static_cast<std::uint64_t>(matrices.columns),
                                   static_cast<std::uint64_t>(matrices.rows), matrices.lead),
        "matmul");
  Layout owned(layout);
  set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
  set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrices.apart);
  return owned;
}

cublasComputeType_t compute_type(const BlasRequest& r) {
  if (r.factors == DType::f64) return CUBLAS_COMPUTE_64F;
  return r.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

std::int32_t transposition(const Stored& matrices) { return matrices.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

// The library's A is our b: it computes y' = op(b)' op(a)' in column-major order.
Operation make_operation(const BlasRequest& r) {
  cublasLtMatmulDesc_t desc = nullptr;
  check(cublasLtMatmulDescCreate(&desc, compute_type(r), r.factors == DType::f64 ? CUDA_R_64F : CUDA_R_32F), "matmul");
  Operation owned(desc);
  set(desc, CUBLASLT_MATMUL_DESC_TRANSA, transposition(stored_b(r.product)));
  set(desc, CUBLASLT_MATMUL_DESC_TRANSB, transposition(stored_a(r.product)));
  set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(r.epilogue));
  return owned;
}

Preference make_preference(const BlasRequest& r) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "matmul");
  Preference owned(made);
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspace});
  // Partial sums are added in a fixed order and without rounding to a half type.
  const std::uint32_t in_order = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  const std::uint32_t as_result = is_half(r.result) ? 0 : CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, in_order | as_result);
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(made, attribute, static_cast<std::uint32_t>(r.alignment));
  }
  return owned;
}

// The value of the attribute, or 0 if the algorithm does not have it.
template <class Value>
Value configured(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  Value value{};
  std::size_t written = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(value), &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : Value{};
}

// A name that tells algorithms apart.
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

// For example " a20+5": the rows of a are 20 elements apart, its matrices 5. Empty if there are no gaps.
std::string gaps(const char* name, const Stored& matrices, std::int64_t batch) {
  return matrices.without_gaps(batch) ? std::string() : str(' ', name, matrices.lead, '+', matrices.apart);
}

}  // namespace

std::vector<std::int64_t> cache_key(const BlasRequest& r) {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const StridedProduct& p = r.product;
  return {r.device.index(),
          p.batch,
          p.m,
          p.n,
          p.k,
          p.a.batch,
          p.a.row,
          p.a.column,
          p.b.batch,
          p.b.row,
          p.b.column,
          p.y.batch,
          p.y.row,
          number(r.factors),
          number(r.result),
          r.tf32,
          number(r.epilogue),
          r.alignment,
          number(decision_epoch())};
}

std::string decision_key(const BlasRequest& r) {
  const StridedProduct& p = r.product;
  const Stored a = stored_a(p), b = stored_b(p);
  const char* const epilogue = r.epilogue == CUBLASLT_EPILOGUE_BIAS        ? " bias"
                               : r.epilogue == CUBLASLT_EPILOGUE_RELU      ? " relu"
                               : r.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ? " bias relu"
                               : r.epilogue == CUBLASLT_EPILOGUE_BGRADB    ? " sums"
                                                                           : "";
  return str("cuda.matmul m", p.m, " n", p.n, " k", p.k, " b", p.batch, " ta", static_cast<int>(a.transposed), " tb",
             static_cast<int>(b.transposed), gaps("a", a, p.batch), gaps("b", b, p.batch), gaps("y", stored_y(p), p.batch), ' ',
             r.factors, '>', r.result, r.tf32 ? " tf32" : "", epilogue,
             r.alignment < kFullAlignment ? str(" aligned", r.alignment) : std::string(), ' ', chip_name(r.device));
}

BlasPlan::BlasPlan(const BlasRequest& r)
    : device_(r.device),
      in_double_(r.factors == DType::f64),
      operation_(make_operation(r)),
      a_(make_layout(r.factors, stored_a(r.product), r.product.batch)),
      b_(make_layout(r.factors, stored_b(r.product), r.product.batch)),
      y_(make_layout(r.result, stored_y(r.product), r.product.batch)) {}

void BlasPlan::point_bias(const void* bias) const { set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

std::vector<BlasPlan::Proposal> BlasPlan::proposals(const BlasRequest& r, const void* bias, const char* operation) const {
  const auto preference = make_preference(r);
  if (bias != nullptr) point_bias(bias);
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

void BlasPlan::run(const Proposal& proposal, const BlasOperands& o, const char* operation) const {
  const Range range(operation);
  if (o.bias != nullptr) point_bias(o.bias);
  const Tensor workspace = Tensor::empty({static_cast<std::int64_t>(proposal.workspace)}, DType::u8, device_);
  const double one = 1, zero = 0;
  const float single_one = 1, single_zero = 0;
  const void* const alpha = in_double_ ? static_cast<const void*>(&one) : &single_one;
  const void* const beta = in_double_ ? static_cast<const void*>(&zero) : &single_zero;
  check(cublasLtMatmul(blas_handle(device_), operation_.get(), alpha, o.b, b_.get(), o.a, a_.get(), beta, o.y, y_.get(), o.y,
                       y_.get(), &proposal.algorithm, workspace.raw(), proposal.workspace, stream_of(device_)),
        operation);
}

}  // namespace tessera::cuda
