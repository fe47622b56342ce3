// Where the kept elements of a layer's weight lie, or of any matrix, and all that kernels derive from it. The values are a tensor
// of their own, in the order of the weight's elements.
#pragma once

#include <memory>
#include <mutex>

#include "core/sparse_index.h"

namespace tessera {

namespace cpu::sparse {
struct GradientPlan;
struct GroupedRows;
struct Plan;
}  // namespace cpu::sparse
namespace cuda::sparse {
struct Matrix;
}  // namespace cuda::sparse

class SparseWeight {
 public:
  // `mask` u8, 1 = kept, of the dense weight's shape: [out, in] or [out, kh, kw, in]. Throws ShapeError for another rank.
  explicit SparseWeight(const Tensor& mask);
  ~SparseWeight();
  SparseWeight(const SparseWeight&) = delete;
  SparseWeight& operator=(const SparseWeight&) = delete;

  const Shape& shape() const noexcept { return shape_; }  // of the dense weight
  const SparseIndex& index() const noexcept { return index_; }
  std::int64_t count() const { return index_.count(); }
  std::int64_t taps() const;  // kh kw
  std::uint64_t id() const noexcept { return id_; }  // of no other one in this process

  // i64 [count]: where in the dense weight each value lies.
  const Tensor& positions(Device device) const;
  // i64 [rows + 1]: the values of row r are [offsets[r], offsets[r + 1]).
  const Tensor& offsets(Device device) const;

  // How many rows the forward multiplies at once, because they share columns: the mean over the kept elements, rounded. 1 of
  // single weights; 0 where nothing is kept.
  std::int64_t rows_together() const;

  // For the CPU's kernels, made when they are first asked for.
  const cpu::sparse::Plan& row_plan() const;  // of the result
  const cpu::sparse::Plan& column_plan() const;  // of the input's gradient
  const cpu::sparse::GradientPlan& gradient_plan() const;  // of the values' gradient
  const cpu::sparse::GroupedRows& grouped_rows() const;  // of the result of a few vectors

  // For the kernels of a GPU, likewise, and made anew where another device asks.
  const cuda::sparse::Matrix& row_matrix(Device device) const;
  const cuda::sparse::Matrix& column_matrix(Device device) const;

 private:
  Shape shape_;
  SparseIndex index_;
  std::uint64_t id_;
  mutable std::mutex lock_;
  mutable Tensor positions_, offsets_;
  mutable std::unique_ptr<cpu::sparse::Plan> row_plan_, column_plan_;
  mutable std::unique_ptr<cpu::sparse::GradientPlan> gradient_plan_;
  mutable std::unique_ptr<cpu::sparse::GroupedRows> grouped_rows_;
  mutable std::unique_ptr<cuda::sparse::Matrix> row_matrix_, column_matrix_;
};

using SparseWeightPtr = std::shared_ptr<const SparseWeight>;

}  // namespace tessera
