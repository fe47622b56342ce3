#include "layers/tt_pairs.h"

#include "core/ops/matmul.h"
#include "core/ops/view.h"
#include "core/support/counting.h"
#include "layers/tt_cores.h"

namespace tessera {
namespace {

// The axes o_1, i_1, ..., o_d, i_d of a tensor [o_1, ..., o_d, i_1, ..., i_d], or the inverse permutation.
std::vector<int> paired_axes(std::size_t modes, bool inverse) {
  const int d = static_cast<int>(modes);
  std::vector<int> axes;
  for (int k = 0; k < 2 * d; ++k) axes.push_back(inverse ? (k < d ? 2 * k : 2 * (k - d) + 1) : (k % 2 == 0 ? k / 2 : d + k / 2));
  return axes;
}

Modes paired_sizes(const Modes& out_modes, const Modes& in_modes) {
  Modes sizes;
  for (std::size_t k = 0; k < out_modes.size(); ++k) {
    sizes.push_back(out_modes[k]);
    sizes.push_back(in_modes[k]);
  }
  return sizes;
}

}  // namespace

Modes paired_modes(const Modes& out_modes, const Modes& in_modes) {
  Modes modes;
  for (std::size_t k = 0; k < out_modes.size(); ++k) modes.push_back(product_of({out_modes[k], in_modes[k]}));
  return modes;
}

Tensor tt_tensor(const Tensor& weight, const Modes& out_modes, const Modes& in_modes) {
  Modes sizes = out_modes;
  sizes.insert(sizes.end(), in_modes.begin(), in_modes.end());
  return weight.contiguous()
      .reshape(shape_of(sizes))
      .permute(paired_axes(out_modes.size(), false))
      .contiguous()
      .reshape(shape_of(paired_modes(out_modes, in_modes)));
}

Tensor tt_matrix(const Tensor& tensor, const Modes& out_modes, const Modes& in_modes) {
  const Tensor paired = tensor.reshape(shape_of(paired_sizes(out_modes, in_modes)));
  return paired.permute(paired_axes(out_modes.size(), true)).contiguous().reshape({product_of(out_modes), product_of(in_modes)});
}

Var tt_matrix(const Var& tensor, const Modes& out_modes, const Modes& in_modes) {
  const Var paired = reshape(tensor, shape_of(paired_sizes(out_modes, in_modes)));
  return reshape(permute(paired, paired_axes(out_modes.size(), true)), {product_of(out_modes), product_of(in_modes)});
}

Var joined_pairs(std::span<const Var> cores, std::span<const std::int64_t> out_modes, std::span<const std::int64_t> in_modes) {
  Modes sizes{cores.front().shape()[0]};
  for (std::size_t k = 0; k < cores.size(); ++k) {
    sizes.push_back(out_modes[k]);
    sizes.push_back(in_modes[k]);
  }
  sizes.push_back(cores.back().shape()[2]);
  // r, o_1, i_1, o_2, i_2, ..., r' -> r, o_1, o_2, ..., i_1, i_2, ..., r'
  std::vector<int> axes{0};
  for (const int parity : {1, 2}) {
    for (int k = 0; k < static_cast<int>(cores.size()); ++k) axes.push_back(2 * k + parity);
  }
  axes.push_back(static_cast<int>(sizes.size()) - 1);
  const Var product = permute(reshape(joined_cores(cores), shape_of(sizes)), axes);
  return reshape(product, {sizes.front(), product_of(out_modes), product_of(in_modes), sizes.back()});
}

// Composes two halves, because a tensor with the axes of all cores at once may exceed the most axes of a shape.
Var composed_pairs(std::span<const Var> cores, const Modes& out_modes, const Modes& in_modes, std::size_t left) {
  const std::span<const std::int64_t> outs(out_modes), ins(in_modes);
  const Var first = joined_pairs(cores.first(left), outs.first(left), ins.first(left));
  const Var second = joined_pairs(cores.subspan(left), outs.subspan(left), ins.subspan(left));
  const std::int64_t o_left = first.shape()[1], i_left = first.shape()[2], r = first.shape()[3];
  const std::int64_t o_right = second.shape()[1], i_right = second.shape()[2];
  const Var product = matmul(reshape(first, {o_left * i_left, r}), reshape(second, {r, o_right * i_right}));
  return reshape(permute(reshape(product, {o_left, i_left, o_right, i_right}), {0, 2, 1, 3}),
                 {o_left * o_right, i_left * i_right});
}

}  // namespace tessera
