#include "bench/rivals/cublas_rival.h"

#include <cublasLt.h>

#include <memory>

#include "core/cuda/libraries/blas_handle.h"
#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/handle.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr int kMostAlgorithms = 64;
constexpr std::size_t kWorkspace = 64u << 20;

using Handle = cuda::UniqueHandle<cublasLtHandle_t, cublasLtDestroy>;
using Description = cuda::UniqueHandle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = cuda::UniqueHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = cuda::UniqueHandle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

void check(cublasStatus_t status, const char* call) {
  TESSERA_CHECK(status == CUBLAS_STATUS_SUCCESS, DeviceError, call, ": ", cublasLtGetStatusName(status));
}

// The layout of a row-major matrix. cuBLASLt sees it as its transpose, which is column-major.
Layout layout_of(const Tensor& t) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, cuda::blas_type(t.dtype()), static_cast<std::uint64_t>(t.dim(1)),
                                   static_cast<std::uint64_t>(t.dim(0)), t.dim(1)),
        "cublasLtMatrixLayoutCreate");
  return Layout(layout);
}

// A row-major y = a b is the same bytes as the column-major y' = b' a'.
class CublasProduct {
 public:
  CublasProduct(const Product& product, bool tf32) {
    cublasLtHandle_t handle = nullptr;
    check(cublasLtCreate(&handle), "cublasLtCreate");
    handle_ = Handle(handle);
    cublasLtMatmulDesc_t description = nullptr;
    check(cublasLtMatmulDescCreate(&description, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    description_ = Description(description);
    transpose(CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_b);
    transpose(CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_a);
    b_ = layout_of(product.b);
    a_ = layout_of(product.a);
    y_ = layout_of(product.y);
    workspace_ = Tensor::empty({static_cast<std::int64_t>(kWorkspace)}, DType::u8, product.a.device());
  }

  std::vector<cublasLtMatmulAlgo_t> algorithms() const {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
    const Preference preference(made);
    check(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace),
          "cublasLtMatmulPreferenceSetAttribute");
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_.get(), description_.get(), b_.get(), a_.get(), y_.get(), y_.get(), made,
                                         kMostAlgorithms, found.data(), &count),
          "cublasLtMatmulAlgoGetHeuristic");
    std::vector<cublasLtMatmulAlgo_t> usable;
    for (int i = 0; i < count; ++i) {
      const cublasLtMatmulHeuristicResult_t& result = found[static_cast<std::size_t>(i)];
      if (result.state == CUBLAS_STATUS_SUCCESS) usable.push_back(result.algo);
    }
    return usable;
  }

  void run(const Product& product, const cublasLtMatmulAlgo_t& algorithm) const {
    const float one = 1;
    const float zero = 0;
    check(cublasLtMatmul(handle_.get(), description_.get(), &one, product.b.raw(), b_.get(), product.a.raw(), a_.get(), &zero,
                         product.y.raw(), y_.get(), product.y.raw(), y_.get(), &algorithm, workspace_.raw(), kWorkspace,
                         cuda::stream_of(product.a.device())),
          "cublasLtMatmul");
  }

 private:
  void transpose(cublasLtMatmulDescAttributes_t operand, bool transposed) const {
    const cublasOperation_t op = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(description_.get(), operand, &op, sizeof op), "cublasLtMatmulDescSetAttribute");
  }

  Handle handle_;
  Description description_;
  Layout a_, b_, y_;
  Tensor workspace_;
};

}  // namespace

std::vector<RotatedSide> cublas_rivals(const std::vector<Product>& sets, bool tf32) {
  const auto calls = std::make_shared<const CublasProduct>(sets.front(), tf32);
  const auto shared = std::make_shared<const std::vector<Product>>(sets);
  std::vector<RotatedSide> rivals;
  for (const cublasLtMatmulAlgo_t& algorithm : calls->algorithms()) {
    const auto run = [=](std::size_t set) { calls->run((*shared)[set], algorithm); };
    rivals.push_back({str("cuBLASLt, choice ", rivals.size()), run, sets.front().y});
  }
  return rivals;
}

}  // namespace tessera::bench
