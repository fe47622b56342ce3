// The cuBLASLt functions that tessera calls, as loops over the GPU's memory: D = op(A) op(B) in column-major order, with the
// requested epilogues, in tf32 where that is allowed. Two of the three algorithms that are offered can run.
#include <cublasLt.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "tests/simulated_gpu/numbers.h"
#include "tests/simulated_gpu/stream.h"

namespace {

using namespace tessera::simulated_gpu;

struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
};
struct Layout {
  cudaDataType_t type;
  std::size_t rows, columns, lead;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};
struct Preference {
  std::uint64_t workspace = 0;
};

Operation& of(cublasLtMatmulDesc_t handle) { return *reinterpret_cast<Operation*>(handle); }
Layout& of(cublasLtMatrixLayout_t handle) { return *reinterpret_cast<Layout*>(handle); }
Preference& of(cublasLtMatmulPreference_t handle) { return *reinterpret_cast<Preference*>(handle); }

template <class Value>
cublasStatus_t assign(Value& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof(Value)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

Number number(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F: return Number::f32;
    case CUDA_R_64F: return Number::f64;
    case CUDA_R_16BF: return Number::bf16;
    case CUDA_R_16F: return Number::f16;
    default: fail("cublasLt: an element type that tessera has not");
  }
}

// The number format of an operand of o's product.
Number factor(const Operation& o, const Layout& x) {
  return o.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && x.type == CUDA_R_32F ? Number::tf32 : number(x.type);
}

struct Matrix {
  Layout layout;
  const void* data;
  bool transposed;
  Number type;
  // The values of matrix number `batch`, in row-major order if `by_rows`, otherwise in column-major order.
  std::vector<double> values(std::int32_t batch, bool by_rows) const {
    std::vector<double> all;
    const auto begin = static_cast<std::size_t>(batch * layout.stride);
    const std::size_t outer = by_rows ? rows() : columns(), inner = by_rows ? columns() : rows();
    const bool along = by_rows == transposed;  // the inner axis is contiguous in memory
    for (std::size_t i = 0; i < outer; ++i) {
      for (std::size_t j = 0; j < inner; ++j) {
        all.push_back(load(type, data, begin + (along ? i * layout.lead + j : j * layout.lead + i)));
      }
    }
    return all;
  }
  std::size_t rows() const { return transposed ? layout.columns : layout.rows; }
  std::size_t columns() const { return transposed ? layout.rows : layout.columns; }
};

// Columns must not overlap. The matrices of a batch may overlap, unless they are written.
bool is_legal(const Layout& x, bool written) {
  return x.lead >= x.rows && x.batch >= 1 && x.stride >= 0 && !(written && x.batch > 1 && x.stride == 0);
}

// Whether the shapes and types match.
bool fits(const Operation& o, const Matrix& a, const Matrix& b, const Layout& d) {
  if (!is_legal(a.layout, false) || !is_legal(b.layout, false) || !is_legal(d, true)) return false;
  if (a.rows() != d.rows || b.columns() != d.columns || a.columns() != b.rows()) return false;
  if (a.layout.batch != d.batch || b.layout.batch != d.batch || a.layout.type != b.layout.type) return false;
  const bool wide = a.layout.type == CUDA_R_64F;
  if (wide != (o.compute == CUBLAS_COMPUTE_64F) || o.scale != (wide ? CUDA_R_64F : CUDA_R_32F)) return false;
  return d.type == a.layout.type || d.type == CUDA_R_32F;
}

bool has_bias(const Operation& o) { return o.epilogue == CUBLASLT_EPILOGUE_BIAS || o.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS; }

void multiply(const Operation& o, const Matrix& a, const Matrix& b, const Layout& d, void* to) {
  const Number type = number(d.type);
  const std::size_t depth = a.columns();
  for (std::int32_t batch = 0; batch < d.batch; ++batch) {
    const std::vector<double> left = a.values(batch, true), right = b.values(batch, false);
    for (std::size_t column = 0; column < d.columns; ++column) {
      for (std::size_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (std::size_t k = 0; k < depth; ++k) sum += left[row * depth + k] * right[column * depth + k];
        if (has_bias(o)) sum += load(type, o.bias, row);
        const bool rectified = o.epilogue == CUBLASLT_EPILOGUE_RELU || o.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
        if (rectified && sum < 0) sum = 0;
        store(type, to, static_cast<std::size_t>(batch * d.stride) + column * d.lead + row, sum);
      }
    }
  }
  if (o.epilogue != CUBLASLT_EPILOGUE_BGRADB) return;
  const std::vector<double> summed = b.values(0, false);
  for (std::size_t column = 0; column < b.columns(); ++column) {
    double sum = 0;
    for (std::size_t k = 0; k < depth; ++k) sum += summed[column * depth + k];
    store(type, o.bias, column, sum);
  }
}

// The library may lack fused epilogues in double, and sums of B for types other than half types.
bool is_offered(const Operation& o, const Layout& a) {
  if (o.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return true;
  if (o.epilogue == CUBLASLT_EPILOGUE_BGRADB) return a.type == CUDA_R_16F || a.type == CUDA_R_16BF;
  return a.type != CUDA_R_64F;
}

constexpr std::size_t kWorkspaces[] = {0, 4096, 512};

}  // namespace

struct cublasLtContext {};

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusName(cublasStatus_t) { return "status of the simulated cuBLASLt"; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "refused"; }
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t scale) {
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete &of(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return assign(of(desc).transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return assign(of(desc).transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return assign(of(desc).epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return assign(of(desc).bias, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t lead) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, static_cast<std::size_t>(lead)});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return assign(of(layout).batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return assign(of(layout).stride, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &of(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return assign(of(preference).workspace, value, bytes);
  return bytes == sizeof(std::uint32_t) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  *count = 0;
  if (!is_offered(of(desc), of(a))) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (std::size_t i = 0; i < std::size(kWorkspaces) && *count < most; ++i) {
    if (kWorkspaces[i] > of(preference).workspace) continue;
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    result = {};
    result.algo.data[0] = i + 1;
    result.workspaceSize = kWorkspaces[i];
    result.state = i == 2 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  if (attribute != CUBLASLT_ALGO_CONFIG_ID) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto id = static_cast<std::int32_t>(algorithm->data[0]);
  if (bytes != sizeof(id)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &id, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void*, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  const std::lock_guard lock(gpu_mutex());
  const Operation o = of(desc);
  const Matrix left{of(layout_a), a, o.transpose_a == CUBLAS_OP_T, factor(o, of(layout_a))};
  const Matrix right{of(layout_b), b, o.transpose_b == CUBLAS_OP_T, factor(o, of(layout_b))};
  const Layout result = of(layout_d);
  const Number scale = o.scale == CUDA_R_64F ? Number::f64 : Number::f32;
  if (!fits(o, left, right, result) || load(scale, alpha, 0) != 1 || load(scale, beta, 0) != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm->data[0] > 2 || workspace_bytes < kWorkspaces[algorithm->data[0] - 1]) return CUBLAS_STATUS_INVALID_VALUE;
  put(stream, [=] {
    std::memset(workspace, 0xab, workspace_bytes);
    multiply(o, left, right, result, d);
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
