#include "layers/sparse_parts.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/mask_bits.h"
#include "core/ops/sparse_product.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera {

const SparseWeightPtr& SparseParts::weight() const {
  if (weight_) return weight_;
  const Tensor& bits = mask_.value;
  const std::string fault = bits_fault(bits, shape_.numel(), values_.value().numel());
  TESSERA_CHECK(fault.empty(), IoError, kind_, " '", owner_.path(), "': ", mask_.name, ' ', fault);
  weight_ = std::make_shared<SparseWeight>(unpacked_bits(bits, shape_));
  return weight_;
}

void SparseParts::changed() {
  weight_.reset();
  weight();
}

void SparseParts::take(const Tensor& weight, const Tensor& mask) {
  mask_.value = packed_bits(mask).to(mask_.value.device());
  changed();
  Tensor kept = Tensor::empty(values_.value().shape(), weight.dtype());
  cpu::gather_values(weight.to(Device::cpu()).contiguous(), this->weight()->positions(Device::cpu()), kept);
  values_.set_value(kept.to(values_.value().device()));
}

void SparseParts::draw_mask(std::uint64_t seed) {
  if (kept_bits(mask_.value) == values_.value().numel()) return;
  const Tensor scores = Tensor::empty({shape_.numel()});
  fill_uniform(scores, RngStream(seed, owner_.path(), "mask"), 0, 1);
  std::vector<std::int64_t> order(static_cast<std::size_t>(shape_.numel()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order,
                           [&](std::int64_t a, std::int64_t b) { return scores.data<float>()[a] > scores.data<float>()[b]; });
  const Tensor drawn = Tensor::zeros(shape_, DType::u8);
  for (std::int64_t i = 0; i < values_.value().numel(); ++i) drawn.data<std::uint8_t>()[order[i]] = 1;
  mask_.value = packed_bits(drawn).to(mask_.value.device());
  changed();
}

Tensor SparseParts::dense() const { return composed_weight(values_.value(), *weight()); }

Tensor SparseParts::mask() const { return unpacked_bits(mask_.value, shape_); }

std::string SparseParts::structure() const { return str(weight()->rows_together(), " rows together"); }

std::string kept_problem(std::int64_t kept, const Shape& weight) {
  if (kept >= 0 && kept <= weight.numel()) return "";
  return str("is ", kept, "; the weight ", weight, " has ", weight.numel(), " elements");
}

}  // namespace tessera
