// Contraction of two tensors as matrix products on the tensors as they lie in memory (Shi, Niranjan, Anandkumar & Cecka, HiPC
// 2016, table 2; columns there are rows here). The whole product is planned first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace tessera::linalg {

// How one contraction runs: `calls` times a batch of `batch` products [m, k] x [k, n], on copies of `copies` tensors.
//
// Indices in one operand and the output are free, in both operands contracted, in all three tensors batch indices. Neighbours of
// one kind that lie alike in every tensor that has them are flattened into one index. One free index of each operand and one
// contracted index make the matrices, such that every matrix has an index of stride 1. One index more is the batch of a
// strided-batched GEMM, whose matrices lie as far apart as the tensor says. What is left is looped over. Where no choice leaves
// every matrix an index of stride 1, or several contracted indices do not flatten, as few tensors as possible are copied:
// operands before the product, the result behind it. Further ones are copied where one larger product is predicted to be faster
// than many small ones, or than one that reads an operand's columns pages apart.
struct ContractPlan {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t batch = 1;
  std::int64_t calls = 1;  // 0: nothing is multiplied
  int loops = 0;  // indices that the calls loop over
  int copies = 0;
  std::string text = {};  // "4 calls, batch b, of [m, k] x [k, np], the left operand copied as bmk"

  bool one_gemm() const { return calls == 1 && batch == 1; }
  bool one_batched_gemm() const { return calls == 1 && batch > 1; }
};

// Which tensors a plan copies: those that no product takes as they lie, or others too where that is faster on a CPU. On a GPU
// the cost of a copy beside that of a call was never measured, so plans for a GPU copy only where needed.
enum class ContractCopies { where_faster, where_needed };

// a and b f32 or f64 of one dtype, on one device, any strides; the result is contiguous, of their dtype, on their device. Indices
// of size 1 take no part in a plan. On a GPU f32 is multiplied in f32 unless tf32_products(). Throws what parse_equation and
// index_sizes throw, ShapeError on an equation of other than two operands, DTypeError or DeviceError on operands that differ. A
// sum over nothing is 0. No gradient.
Tensor contract(std::string_view equation, const Tensor& a, const Tensor& b,
                ContractCopies copies = ContractCopies::where_faster);

ContractPlan plan_contract(std::string_view equation, const Tensor& a, const Tensor& b,
                           ContractCopies copies = ContractCopies::where_faster);

}  // namespace tessera::linalg
