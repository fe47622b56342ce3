// What cuBLASLt offers for one product, and how its operands lie.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/cuda/libraries/blas_handle.h"
#include "core/strided_product.h"

namespace tessera::cuda {

// The alignment of all operands of a product with which the library's fastest kernels are offered; our blocks are aligned to 512
// bytes.
constexpr std::int64_t kFullAlignment = 16;

// Everything that a plan depends on.
struct BlasRequest {
  Device device;
  StridedProduct product;  // regular()
  DType factors, result;
  bool tf32;
  cublasLtEpilogue_t epilogue;
  std::int64_t alignment;  // bytes, of the bias and of every matrix's first element; kFullAlignment at most
};

// For the cache of plans in one process, and "cuda.matmul m1024 n64 k576 b1 ta0 tb1 bf16>bf16 bias relu sm90x132x3352" for
// decisions.
std::vector<std::int64_t> cache_key(const BlasRequest& request);
std::string decision_key(const BlasRequest& request);

struct BlasOperands {
  const void* a;
  const void* b;
  void* y;
  void* bias;  // read or, of BGRADB, written; null where the epilogue has none
};

// The descriptors of a product.
class BlasPlan {
 public:
  struct Proposal {
    std::string name;  // "lt66 tile20 stages35 split1 swizzle0 option0 inner0 cluster2": the same in every run
    cublasLtMatmulAlgo_t algorithm;
    std::size_t workspace;
  };

  explicit BlasPlan(const BlasRequest& request);

  // Best first by the library's heuristics; none where it has no algorithm with this epilogue. Those that add up in an order of
  // their own are left out: parts of k by atomics (in place) or rounded to the result's dtype.
  std::vector<Proposal> proposals(const BlasRequest& request, const void* bias, const char* operation) const;

  void run(const Proposal& proposal, const BlasOperands& operands, const char* operation) const;

  Proposal chosen{};

 private:
  void point_bias(const void* bias) const;

  Device device_;
  bool in_double_;
  Operation operation_;
  Layout a_, b_, y_;
};

}  // namespace tessera::cuda
