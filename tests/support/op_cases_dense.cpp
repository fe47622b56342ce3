// Rows for products: matmul, linear, conv2d, and those with sparse weights.
#include <algorithm>

#include "core/ops/conv2d.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/sparse_product.h"
#include "tests/support/op_cases.h"
#include "tests/support/reference.h"

namespace tessera::testing {
namespace {

using Inputs = std::span<const Tensor>;
using std::int64_t;

Tensor matmul_reference(const Tensor& a, const Tensor& b, const MatmulOptions& o) {
  const auto lead = [](const Tensor& x) { return Shape(std::span(x.shape().begin(), static_cast<std::size_t>(x.rank() - 2))); };
  const Shape batch = broadcast_shapes(lead(a), lead(b), "reference");
  const auto flat = [&](const Tensor& x) {
    return x.expand(batch.append(x.dim(-2)).append(x.dim(-1))).contiguous().reshape({batch.numel(), x.dim(-2), x.dim(-1)});
  };
  const Tensor x = flat(a);
  const Tensor w = flat(b);
  const int64_t m = x.dim(o.transpose_a ? 2 : 1);
  const int64_t k = x.dim(o.transpose_a ? 1 : 2);
  const int64_t n = w.dim(o.transpose_b ? 1 : 2);
  const Tensor y = Tensor::zeros({batch.numel(), m, n}, DType::f64);
  for (int64_t s = 0; s < y.dim(0); ++s) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t p = 0; p < k; ++p) {
          at(y, s, i, j) += (o.transpose_a ? at(x, s, p, i) : at(x, s, i, p)) * (o.transpose_b ? at(w, s, j, p) : at(w, s, p, j));
        }
      }
    }
  }
  return y.reshape(batch.append(m).append(n));
}

void add_matmul(std::vector<OpCase>& cases, const std::string& name, const Shape& a, const Shape& b,
                const MatmulOptions& o = {}) {
  cases.push_back(op_case(
      "matmul/" + name, {a, b}, [o](std::span<const Var> in) { return matmul(in[0], in[1], o); },
      [o](Inputs in) { return matmul_reference(in[0], in[1], o); }));
}

Tensor linear_reference(Inputs in) {
  Tensor y = matmul_reference(in[0].reshape({in[0].numel() / std::max<int64_t>(in[0].dim(-1), 1), in[0].dim(-1)}), in[1],
                              {.transpose_b = true});
  if (in.size() > 2) {
    for (int64_t i = 0; i < y.dim(0); ++i) {
      for (int64_t j = 0; j < y.dim(1); ++j) at(y, i, j) += at(in[2], j);
    }
  }
  return y.reshape(in[0].shape().erase(in[0].rank() - 1).append(in[1].dim(0)));
}

// A library without a fused bias rounds the product before the bias is added.
OpCase with_bias_behind(OpCase row, bool bias) {
  if (bias) row.half_roundings = 2;
  return row;
}

void add_linear(std::vector<OpCase>& cases, const std::string& name, const Shape& x, int64_t out, bool bias) {
  std::vector<Shape> shapes{x, {out, x.dim(-1)}};
  if (bias) shapes.push_back({out});
  const OpCase row = op_case(
      "linear/" + name, shapes, [](std::span<const Var> in) { return linear(in[0], in[1], in.size() > 2 ? in[2] : Var()); },
      linear_reference);
  cases.push_back(with_parameters(with_bias_behind(row, bias)));
}

Tensor conv2d_reference(Inputs in, const Conv2dOptions& o) {
  const Tensor& x = in[0];
  const Tensor& w = in[1];
  const int64_t oh = (x.dim(1) + 2 * o.padding.h - o.dilation.h * (w.dim(1) - 1) - 1) / o.stride.h + 1;
  const int64_t ow = (x.dim(2) + 2 * o.padding.w - o.dilation.w * (w.dim(2) - 1) - 1) / o.stride.w + 1;
  const Tensor y = Tensor::zeros({x.dim(0), oh, ow, w.dim(0)}, DType::f64);
  const auto tap = [&](int64_t n, int64_t i, int64_t j, int64_t c, int64_t ky, int64_t kx, int64_t k) {
    const int64_t iy = i * o.stride.h + ky * o.dilation.h - o.padding.h;
    const int64_t ix = j * o.stride.w + kx * o.dilation.w - o.padding.w;
    if (iy < 0 || iy >= x.dim(1) || ix < 0 || ix >= x.dim(2)) return 0.0;
    const int64_t group = c / (w.dim(0) / o.groups);
    return at(x, n, iy, ix, group * w.dim(3) + k) * at(w, c, ky, kx, k);
  };
  for (int64_t n = 0; n < y.dim(0); ++n)
    for (int64_t i = 0; i < oh; ++i)
      for (int64_t j = 0; j < ow; ++j)
        for (int64_t c = 0; c < w.dim(0); ++c) {
          double sum = in.size() > 2 ? at(in[2], c) : 0.0;
          for (int64_t ky = 0; ky < w.dim(1); ++ky)
            for (int64_t kx = 0; kx < w.dim(2); ++kx)
              for (int64_t k = 0; k < w.dim(3); ++k) sum += tap(n, i, j, c, ky, kx, k);
          at(y, n, i, j, c) = sum;
        }
  return y;
}

// Libraries round a convolution before the bias is added. A sparse one may run as the convolution of its dense weight.
void add_convolution(std::vector<OpCase>& cases, OpCase row) {
  row.half_roundings = 2;
  cases.push_back(with_parameters(std::move(row)));
}

void add_conv2d(std::vector<OpCase>& cases, const std::string& name, const Shape& x, const Shape& weight,
                const Conv2dOptions& o = {}, bool bias = false) {
  std::vector<Shape> shapes{x, weight};
  if (bias) shapes.push_back({weight[0]});
  add_convolution(cases, op_case(
                             "conv2d/" + name, shapes,
                             [o](std::span<const Var> in) { return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Var(), o); },
                             [o](Inputs in) { return conv2d_reference(in, o); }));
}

void add_conv2d_cases(std::vector<OpCase>& cases) {
  const Extent one{1, 1};
  add_conv2d(cases, "plain_c1", {1, 5, 7, 1}, {3, 3, 3, 1});
  add_conv2d(cases, "pad1_c3_bias", {3, 7, 5, 3}, {16, 3, 3, 3}, {.padding = one}, true);
  add_conv2d(cases, "pad1_c16", {2, 6, 6, 16}, {16, 3, 3, 16}, {.padding = one});
  add_conv2d(cases, "pad1_c33_to_7", {1, 4, 5, 33}, {7, 3, 3, 33}, {.padding = one}, true);
  add_conv2d(cases, "stride2_pad1", {3, 9, 8, 7}, {5, 3, 3, 7}, {.stride = {2, 2}, .padding = one});
  add_conv2d(cases, "stride_2x3", {1, 8, 11, 3}, {4, 3, 2, 3}, {.stride = {2, 3}, .padding = {0, 1}});
  add_conv2d(cases, "dilation2", {2, 9, 9, 7}, {3, 3, 3, 7}, {.padding = {2, 1}, .dilation = {2, 2}});
  add_conv2d(cases, "kernel_3x1", {2, 6, 5, 16}, {7, 3, 1, 16}, {.padding = {1, 0}});
  add_conv2d(cases, "kernel_1x3_bias", {2, 6, 5, 7}, {16, 1, 3, 7}, {.padding = {0, 1}}, true);
  add_conv2d(cases, "kernel_5_padding_above_kernel", {1, 3, 3, 2}, {2, 5, 5, 2}, {.padding = {6, 4}});
  add_conv2d(cases, "pointwise_bias", {3, 5, 3, 33}, {16, 1, 1, 33}, {}, true);
  add_conv2d(cases, "pointwise_stride2", {2, 5, 5, 16}, {7, 1, 1, 16}, {.stride = {2, 2}});
  add_conv2d(cases, "pointwise_padded", {1, 3, 3, 3}, {4, 1, 1, 3}, {.padding = one}, true);
  add_conv2d(cases, "groups2", {2, 5, 5, 6}, {4, 3, 3, 3}, {.padding = one, .groups = 2}, true);
  add_conv2d(cases, "groups4_pointwise", {1, 3, 4, 16}, {8, 1, 1, 4}, {.groups = 4});
  add_conv2d(cases, "stride2_pad1_dilation2_groups3", {2, 9, 7, 6}, {9, 3, 2, 2},
             {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 3}, true);
  add_conv2d(cases, "depthwise_c7", {2, 6, 5, 7}, {7, 3, 3, 1}, {.padding = one, .groups = 7}, true);
  add_conv2d(cases, "depthwise_c33_stride2", {1, 7, 7, 33}, {33, 3, 3, 1}, {.stride = {2, 2}, .padding = one, .groups = 33});
  add_conv2d(cases, "depthwise_multiplier2", {1, 4, 4, 3}, {6, 3, 3, 1}, {.padding = one, .groups = 3});
  add_conv2d(cases, "batch0", {0, 5, 5, 3}, {4, 3, 3, 3}, {.padding = one}, true);
  add_conv2d(cases, "batch0_pointwise", {0, 5, 5, 3}, {4, 1, 1, 3}, {}, true);
}

void add_matrix_cases(std::vector<OpCase>& cases) {
  add_matmul(cases, "plain", {7, 5}, {5, 3});
  add_matmul(cases, "transpose_a", {5, 33}, {5, 16}, {.transpose_a = true});
  add_matmul(cases, "transpose_b", {3, 17}, {11, 17}, {.transpose_b = true});
  add_matmul(cases, "transpose_both", {5, 7}, {3, 5}, {.transpose_a = true, .transpose_b = true});
  add_matmul(cases, "ones", {1, 1}, {1, 1});
  add_matmul(cases, "rows0", {0, 3}, {3, 5});
  add_matmul(cases, "inner0", {2, 0}, {0, 5});
  add_matmul(cases, "batched", {2, 3, 5, 7}, {2, 3, 7, 4});
  add_matmul(cases, "batched_transpose_b", {3, 5, 7}, {3, 4, 7}, {.transpose_b = true});
  add_matmul(cases, "batched_transpose_a", {3, 7, 5}, {3, 7, 4}, {.transpose_a = true});
  add_matmul(cases, "shared_b", {2, 3, 5, 7}, {7, 4});
  add_matmul(cases, "shared_b_transposed", {3, 5, 7}, {1, 4, 7}, {.transpose_b = true});
  add_matmul(cases, "broadcast_both", {2, 1, 5, 3}, {1, 3, 3, 2});
  add_matmul(cases, "shared_a", {5, 3}, {2, 3, 2});
  add_linear(cases, "plain", {7, 5}, 3, false);
  add_linear(cases, "bias", {33, 17}, 16, true);
  add_linear(cases, "three_dimensions", {2, 3, 5}, 7, true);
  add_linear(cases, "one_row", {5}, 4, true);
  add_linear(cases, "one_output", {3, 7}, 1, true);
  add_linear(cases, "rows0", {0, 5}, 3, true);
}

// Whether the mask keeps element (row, column) of the weight as a matrix.
using Keeps = std::function<bool(int64_t row, int64_t column)>;

SparseWeightPtr sparse_weight(const Shape& shape, const Keeps& keeps) {
  const Tensor mask = Tensor::zeros(shape, DType::u8);
  const int64_t columns = shape.erase(0).numel();
  for (int64_t i = 0; i < mask.numel(); ++i) mask.data<std::uint8_t>()[i] = keeps(i / columns, i % columns) ? 1 : 0;
  return std::make_shared<SparseWeight>(mask);
}

// Turns x, values and the bias into the inputs of a dense op.
std::vector<Tensor> densified(Inputs in, const SparseWeight& weight) {
  std::vector<Tensor> dense(in.begin(), in.end());
  dense[1] = Tensor::zeros(weight.shape(), DType::f64);
  int64_t next = 0;
  for (int64_t r = 0; r < weight.index().rows; ++r) {
    for (int64_t i = weight.index().offsets[r]; i < weight.index().offsets[r + 1]; ++i) {
      dense[1].data<double>()[r * weight.index().columns + weight.index().indices[i]] = at(in[1], next++);
    }
  }
  return dense;
}

void add_sparse_linear(std::vector<OpCase>& cases, const std::string& name, const Shape& x, int64_t out, const Keeps& keeps,
                       bool bias = false) {
  const SparseWeightPtr weight = sparse_weight({out, x.dim(-1)}, keeps);
  std::vector<Shape> shapes{x, {weight->count()}};
  if (bias) shapes.push_back({out});
  const OpCase row = op_case(
      "sparse_linear/" + name, shapes,
      [weight](std::span<const Var> in) { return sparse_linear(in[0], in[1], weight, in.size() > 2 ? in[2] : Var()); },
      [weight](Inputs in) { return linear_reference(densified(in, *weight)); });
  cases.push_back(with_parameters(with_bias_behind(row, bias)));
}

void add_sparse_conv2d(std::vector<OpCase>& cases, const std::string& name, const Shape& x, const Shape& shape,
                       const Keeps& keeps, const Conv2dOptions& o = {}, bool bias = false) {
  const SparseWeightPtr weight = sparse_weight(shape, keeps);
  std::vector<Shape> shapes{x, {weight->count()}};
  if (bias) shapes.push_back({shape[0]});
  add_convolution(cases, op_case(
                             "sparse_conv2d/" + name, shapes,
                             [weight, o](std::span<const Var> in) {
                               return sparse_conv2d(in[0], in[1], weight, in.size() > 2 ? in[2] : Var(), o);
                             },
                             [weight, o](Inputs in) { return conv2d_reference(densified(in, *weight), o); }));
}

Keeps scattered(int64_t every) {
  return [every](int64_t r, int64_t c) { return (r * 7 + c * 11 + r * c % 5) % every == 0; };
}
Keeps blocks(int64_t side) {
  return [side](int64_t r, int64_t c) { return (r / side + 2 * (c / side)) % 4 == 0; };
}
Keeps tiles(int64_t rows) {
  return [rows](int64_t r, int64_t c) { return (r / rows * 5 + c * 3) % 8 < 2; };
}
bool all(int64_t, int64_t) { return true; }
bool none(int64_t, int64_t) { return false; }

void add_sparse_linear_cases(std::vector<OpCase>& cases) {
  add_sparse_linear(cases, "scattered_bias", {33, 70}, 19, scattered(6), true);
  add_sparse_linear(cases, "three_dimensions", {2, 3, 37}, 16, scattered(5));
  add_sparse_linear(cases, "more_columns_than_a_cache_block", {70, 300}, 9, scattered(9), true);
  add_sparse_linear(cases, "mostly_kept", {5, 11}, 7, [](int64_t r, int64_t c) { return (r + c) % 3 != 0; });
  add_sparse_linear(cases, "all_kept", {3, 9}, 5, all);
  add_sparse_linear(cases, "none_kept", {3, 9}, 5, none, true);
  add_sparse_linear(
      cases, "empty_rows", {17, 20}, 12, [](int64_t r, int64_t c) { return r % 3 == 1 && c % 4 == 0; }, true);
  add_sparse_linear(cases, "three_elements", {4, 13}, 6, [](int64_t r, int64_t c) { return r == 2 && c % 5 == 0; });
  add_sparse_linear(cases, "tiles_of_16_ragged", {65, 40}, 39, tiles(16), true);
  add_sparse_linear(cases, "tiles_of_5", {130, 21}, 10, tiles(5));
  add_sparse_linear(cases, "blocks_of_4_ragged", {37, 30}, 22, blocks(4), true);
  add_sparse_linear(cases, "blocks_of_16", {66, 64}, 48, blocks(16));
  add_sparse_linear(
      cases, "long_rows", {67, 150}, 5, [](int64_t r, int64_t c) { return (r + c) % 3 != 0; }, true);
  add_sparse_linear(cases, "many_vectors", {131, 9}, 4, scattered(3));
  add_sparse_linear(cases, "seven_vectors", {7, 40}, 11, scattered(5), true);
  add_sparse_linear(cases, "four_vectors", {4, 40}, 11, scattered(5), true);
  add_sparse_linear(cases, "two_vectors", {2, 40}, 9, scattered(6));
  add_sparse_linear(cases, "one_vector", {70}, 21, scattered(5), true);
  add_sparse_linear(cases, "one_element", {1, 1}, 1, all);
  add_sparse_linear(cases, "rows0", {0, 5}, 3, scattered(3), true);
}

void add_sparse_conv2d_cases(std::vector<OpCase>& cases) {
  const Extent one{1, 1};
  add_sparse_conv2d(cases, "pad1_bias", {2, 7, 5, 16}, {19, 3, 3, 16}, scattered(8), {.padding = one}, true);
  add_sparse_conv2d(cases, "pad1_tiles", {1, 6, 6, 5}, {32, 3, 3, 5}, tiles(16), {.padding = one});
  add_sparse_conv2d(cases, "stride2_pad1", {2, 9, 8, 7}, {5, 3, 3, 7}, scattered(5), {.stride = {2, 2}, .padding = one}, true);
  add_sparse_conv2d(cases, "stride2_tiles", {1, 7, 9, 4}, {12, 3, 2, 4}, tiles(6), {.stride = {2, 3}, .padding = {0, 1}});
  add_sparse_conv2d(cases, "dilation2", {2, 9, 9, 3}, {4, 3, 3, 3}, scattered(5), {.padding = {2, 1}, .dilation = {2, 2}});
  add_sparse_conv2d(cases, "pointwise_bias", {3, 5, 3, 33}, {16, 1, 1, 33}, scattered(6), {}, true);
  add_sparse_conv2d(cases, "pointwise_tiles", {1, 9, 8, 24}, {37, 1, 1, 24}, tiles(16), {}, true);
  add_sparse_conv2d(cases, "all_kept", {1, 5, 4, 3}, {6, 3, 3, 3}, all, {.padding = one}, true);
  add_sparse_conv2d(cases, "none_kept", {1, 4, 3, 2}, {3, 3, 3, 2}, none, {}, true);
  add_sparse_conv2d(cases, "blocks_of_8_stride2", {2, 8, 7, 16}, {16, 3, 3, 16}, blocks(8), {.stride = {2, 2}, .padding = one});
  add_sparse_conv2d(cases, "pointwise_stride2", {2, 5, 5, 16}, {7, 1, 1, 16}, scattered(5), {.stride = {2, 2}});
  add_sparse_conv2d(cases, "batch0", {0, 5, 5, 3}, {4, 3, 3, 3}, scattered(4), {.padding = one}, true);
}

}  // namespace

std::vector<OpCase> dense_op_cases() {
  std::vector<OpCase> cases;
  add_matrix_cases(cases);
  add_conv2d_cases(cases);
  add_sparse_linear_cases(cases);
  add_sparse_conv2d_cases(cases);
  return cases;
}

}  // namespace tessera::testing
