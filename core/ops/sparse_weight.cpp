#include "core/ops/sparse_weight.h"

#include <atomic>

#include "core/cpu/sparse/gradient_plan.h"
#include "core/cpu/sparse/plan.h"
#include "core/cpu/sparse/row_dots.h"
#include "core/cuda/sparse/matrix.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

const Shape& checked(const Tensor& mask) {
  TESSERA_CHECK(mask.rank() == 2 || mask.rank() == 4, ShapeError, "a sparse weight's mask is ", mask.shape(),
                "; needs [out, in] or [out, kh, kw, in]");
  return mask.shape();
}

Tensor positions_of(const SparseIndex& index) {
  Tensor positions = Tensor::empty({index.count()}, DType::i64);
  std::int64_t* to = positions.data<std::int64_t>();
  for (std::int64_t r = 0; r < index.rows; ++r) {
    for (std::int64_t i = index.offsets[r]; i < index.offsets[r + 1]; ++i) *to++ = r * index.columns + index.indices[i];
  }
  return positions;
}

}  // namespace

SparseWeight::SparseWeight(const Tensor& mask) : shape_(checked(mask)), index_(sparse_index(mask)), id_(next_id()) {}

SparseWeight::~SparseWeight() = default;

std::int64_t SparseWeight::taps() const { return shape_.rank() == 4 ? shape_[1] * shape_[2] : 1; }

const Tensor& SparseWeight::positions(Device device) const {
  const std::scoped_lock lock(lock_);
  if (!positions_.defined()) positions_ = positions_of(index_);
  if (positions_.device() != device) positions_ = positions_.to(device);
  return positions_;
}

const Tensor& SparseWeight::offsets(Device device) const {
  const std::scoped_lock lock(lock_);
  if (!offsets_.defined()) offsets_ = Tensor::from(index_.offsets, {index_.rows + 1});
  if (offsets_.device() != device) offsets_ = offsets_.to(device);
  return offsets_;
}

std::int64_t SparseWeight::rows_together() const {
  std::int64_t weighted = 0, kept = 0;
  for (const cpu::sparse::Piece& piece : row_plan().pieces) {
    const std::int64_t weights = std::int64_t{piece.row_count} * piece.column_count;
    weighted += weights * piece.row_count;
    kept += weights;
  }
  return kept == 0 ? 0 : (weighted + kept / 2) / kept;
}

const cpu::sparse::Plan& SparseWeight::row_plan() const {
  const std::scoped_lock lock(lock_);
  if (!row_plan_) row_plan_ = std::make_unique<cpu::sparse::Plan>(cpu::sparse::row_plan(index_, taps()));
  return *row_plan_;
}

const cpu::sparse::Plan& SparseWeight::column_plan() const {
  const std::scoped_lock lock(lock_);
  if (!column_plan_) column_plan_ = std::make_unique<cpu::sparse::Plan>(cpu::sparse::column_plan(index_, taps()));
  return *column_plan_;
}

const cpu::sparse::GradientPlan& SparseWeight::gradient_plan() const {
  const std::scoped_lock lock(lock_);
  if (!gradient_plan_) {
    gradient_plan_ = std::make_unique<cpu::sparse::GradientPlan>(cpu::sparse::gradient_plan(index_, taps()));
  }
  return *gradient_plan_;
}

const cpu::sparse::GroupedRows& SparseWeight::grouped_rows() const {
  const std::scoped_lock lock(lock_);
  if (!grouped_rows_) grouped_rows_ = std::make_unique<cpu::sparse::GroupedRows>(cpu::sparse::grouped_rows(index_));
  return *grouped_rows_;
}

const cuda::sparse::Matrix& SparseWeight::row_matrix(Device device) const {
  const std::scoped_lock lock(lock_);
  if (!row_matrix_ || row_matrix_->offsets.device() != device) {
    row_matrix_ = std::make_unique<cuda::sparse::Matrix>(cuda::sparse::row_matrix(index_, taps(), device));
  }
  return *row_matrix_;
}

const cuda::sparse::Matrix& SparseWeight::column_matrix(Device device) const {
  const std::scoped_lock lock(lock_);
  if (!column_matrix_ || column_matrix_->offsets.device() != device) {
    column_matrix_ = std::make_unique<cuda::sparse::Matrix>(cuda::sparse::column_matrix(index_, taps(), device));
  }
  return *column_matrix_;
}

}  // namespace tessera
