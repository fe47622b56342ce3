// Rows for reductions, softmax and losses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/cross_entropy.h"
#include "core/ops/mse.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/ops/sparse_softmax.h"
#include "tests/support/op_cases.h"
#include "tests/support/reference.h"

namespace tessera::testing {
namespace {

// x folded over `axes` from `start`, with one result per index of the other axes. `keep_dims` keeps the axes with size 1.
Tensor fold(const Tensor& x, const std::vector<int>& axes, bool keep_dims, double start,
            const std::function<double(double, double)>& combine) {
  Shape kept = x.shape();
  for (const int axis : axes) kept.set(axis, 1);
  const Tensor folded = Tensor::full(kept, start, DType::f64);
  for_each_index(x.shape(), [&](const Index& index) {
    std::int64_t at = 0;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (kept[axis] != 1) at += index[static_cast<std::size_t>(axis)] * folded.strides()[axis];
    }
    folded.data<double>()[at] = combine(folded.data<double>()[at], element(x, index));
  });
  if (keep_dims) return folded;
  Shape dropped = kept;
  std::vector<int> descending;
  for (const int axis : axes) descending.push_back(normalize_axis(axis, x.rank(), "fold"));
  std::sort(descending.rbegin(), descending.rend());
  for (const int axis : descending) dropped = dropped.erase(axis);
  return folded.reshape(dropped);
}

struct Reduction {
  std::string variant;
  Shape shape;
  std::vector<int> axes;
  bool keep_dims = false;
};

std::vector<Reduction> reductions() {
  return {{"last", {5, 7}, {-1}},          {"first", {5, 7}, {0}},          {"middle", {3, 5, 7}, {1}, true},
          {"outer_inner", {3, 5, 7}, {0, 2}}, {"all", {3, 5, 7}, {0, 1, 2}}, {"of_one", {1, 1}, {0}},
          {"scalar", {}, {}},              {"none", {2, 3}, {}},            {"zero_kept", {0, 3}, {1}},
          {"bias", {257, 67}, {0}},        {"wide_columns", {2, 8209}, {0}}, {"long_row", {16411}, {0}},
          {"long_rows", {2, 8221}, {1}},  {"many_rows", {5501, 3}, {1}},   {"channels", {2, 61, 5, 31}, {0, 2}}};
}

void add_reductions(std::vector<OpCase>& cases) {
  for (const Reduction& r : reductions()) {
    OpCase row;
    row.name = "sum/" + r.variant;
    row.inputs = {{r.shape}};
    row.op = [r](std::span<const Var> in) { return sum(in[0], r.axes, r.keep_dims); };
    row.reference = [r](std::span<const Tensor> in) {
      return fold(in[0], r.axes, r.keep_dims, 0.0, [](double total, double x) { return total + x; });
    };
    cases.push_back(row);
    row.name = "mean/" + r.variant;
    row.op = [r](std::span<const Var> in) { return mean(in[0], r.axes, r.keep_dims); };
    row.reference = [r](std::span<const Tensor> in) {
      double count = 1;
      for (const int axis : r.axes) count *= static_cast<double>(in[0].dim(axis));
      return fold(in[0], r.axes, r.keep_dims, 0.0, [count](double total, double x) { return total + x / count; });
    };
    cases.push_back(row);
    row.name = "max/" + r.variant;
    row.op = [r](std::span<const Var> in) { return max(in[0], r.axes, r.keep_dims); };
    row.reference = [r](std::span<const Tensor> in) {
      return fold(in[0], r.axes, r.keep_dims, -std::numeric_limits<double>::infinity(),
                  [](double top, double x) { return std::max(top, x); });
    };
    if (r.shape.numel() < 1000) cases.push_back(row);  // large f32 draws have ties, and then differences see two maxima
  }
  cases.push_back({.name = "sum/zero_summed",
                   .inputs = {{{3, 0}}},
                   .op = [](std::span<const Var> in) { return sum(in[0], {1}); },
                   .reference = [](std::span<const Tensor>) { return Tensor::zeros({3}, DType::f64); }});
}

// The softmax over x's last axis, or its logarithm. Each row is shifted by its maximum.
Tensor reference_softmax(const Tensor& x, bool logarithm) {
  return build(x.shape(), [&](const Index& index) {
    Index at = index;
    double top = -std::numeric_limits<double>::infinity();
    for (at.back() = 0; at.back() < x.dim(-1); ++at.back()) top = std::max(top, element(x, at));
    double total = 0.0;
    for (at.back() = 0; at.back() < x.dim(-1); ++at.back()) total += std::exp(element(x, at) - top);
    const double log_y = element(x, index) - top - std::log(total);
    return logarithm ? log_y : std::exp(log_y);
  });
}

void add_softmax(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{5}, Shape{7, 13}, Shape{2, 3, 33}, Shape{4, 1}, Shape{0, 5}, Shape{5, 0}, Shape{67, 67}}) {
    OpCase row;
    row.name = str("softmax/", shape);
    row.inputs = {{shape, true, -3.0, 3.0}};
    row.op = [](std::span<const Var> in) { return softmax(in[0]); };
    row.reference = [](std::span<const Tensor> in) { return reference_softmax(in[0], false); };
    cases.push_back(row);
    row.name = str("log_softmax/", shape);
    row.op = [](std::span<const Var> in) { return log_softmax(in[0]); };
    row.reference = [](std::span<const Tensor> in) { return reference_softmax(in[0], true); };
    cases.push_back(row);
  }
}

// The softmax of scale * x in each row of a sparse matrix. The rows have `lengths` kept elements.
Tensor reference_sparse_softmax(const Tensor& x, const std::vector<std::int64_t>& lengths, double scale) {
  std::vector<std::int64_t> first_of, end_of;  // for each element, where its row begins and ends
  for (const std::int64_t length : lengths) {
    const auto first = static_cast<std::int64_t>(first_of.size());
    first_of.insert(first_of.end(), static_cast<std::size_t>(length), first);
    end_of.insert(end_of.end(), static_cast<std::size_t>(length), first + length);
  }
  return build(x.shape(), [&](const Index& index) {
    Index at = index;
    double total = 0.0;
    for (at.back() = first_of[index.back()]; at.back() < end_of[index.back()]; ++at.back()) {
      total += std::exp(scale * (element(x, at) - element(x, index)));
    }
    return 1.0 / total;
  });
}

// Row r keeps lengths[r] of the columns. It takes every third column first.
SparseWeightPtr pattern_of(const std::vector<std::int64_t>& lengths, std::int64_t columns) {
  const auto rows = static_cast<std::int64_t>(lengths.size());
  const Tensor mask = Tensor::zeros({rows, columns}, DType::u8);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t left = lengths[r];
    for (std::int64_t step = 0; left > 0; ++step, --left) {
      const std::int64_t thirds = (columns + 2) / 3;
      const std::int64_t column = step < thirds ? 3 * step : (step - thirds) / 2 * 3 + (step - thirds) % 2 + 1;
      mask.data<std::uint8_t>()[r * columns + column] = 1;
    }
  }
  return std::make_shared<SparseWeight>(mask);
}

void add_sparse_softmax(std::vector<OpCase>& cases, const std::string& name, const std::vector<std::int64_t>& lengths,
                        const Shape& batch = {}, double scale = 1.0) {
  const std::int64_t columns = std::max<std::int64_t>(1, *std::max_element(lengths.begin(), lengths.end()) * 5 / 4);
  const SparseWeightPtr pattern = pattern_of(lengths, columns);
  OpCase row;
  row.name = str("sparse_softmax/", name);
  row.inputs = {{batch.append(pattern->count()), true, -3.0, 3.0}};
  row.op = [pattern, scale](std::span<const Var> in) { return sparse_softmax(in[0], pattern, scale); };
  row.reference = [lengths, scale](std::span<const Tensor> in) { return reference_sparse_softmax(in[0], lengths, scale); };
  cases.push_back(row);
}

void add_sparse_softmaxes(std::vector<OpCase>& cases) {
  add_sparse_softmax(cases, "rows_of_0_1_prime", {0, 1, 7, 13, 0, 2, 31, 32, 33, 0});
  add_sparse_softmax(cases, "batch_scale", {3, 0, 17, 1}, {2, 3}, 0.125);
  add_sparse_softmax(cases, "negative_scale", {5, 1, 11}, {2}, -0.5);
  add_sparse_softmax(cases, "scale0", {5, 0, 3}, {}, 0.0);
  add_sparse_softmax(cases, "as_many_as_are_held_and_more", {255, 256, 257, 0, 700});
  add_sparse_softmax(cases, "many_rows", std::vector<std::int64_t>(151, 37), {3});
  add_sparse_softmax(cases, "one_element", {1});
  add_sparse_softmax(cases, "none_kept", {0, 0, 0}, {5});
  add_sparse_softmax(cases, "batch0", {3, 2}, {0});
}

Tensor reference_cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options) {
  const Tensor log_y = reference_softmax(logits, true);
  const double classes = static_cast<double>(logits.dim(1));
  double total = 0.0;
  double counted = 0.0;
  for_each_index(labels.shape(), [&](const Index& i) {
    const auto label = static_cast<std::int64_t>(element(labels, i));
    if (label == options.ignore_index) return;
    ++counted;
    for (std::int64_t k = 0; k < logits.dim(1); ++k) {
      const double target = (k == label ? 1.0 - options.label_smoothing : 0.0) + options.label_smoothing / classes;
      total -= target * element(log_y, {i[0], k});
    }
  });
  return Tensor::scalar(counted == 0 ? 0.0 : total / counted, DType::f64);
}

void add_cross_entropy(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, std::int64_t n, std::int64_t classes, const CrossEntropyOptions& options) {
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < n; ++i) labels.push_back(i * 7 % classes);
    if (options.ignore_index >= 0 && n > 2) labels[2] = options.ignore_index;
    OpCase row;
    row.name = "cross_entropy/" + variant;
    row.inputs = {{{n, classes}, true, -3.0, 3.0}, {.shape = {n}, .differentiable = false, .indices = labels}};
    row.op = [options](std::span<const Var> in) { return cross_entropy(in[0], in[1].value(), options); };
    row.reference = [options](std::span<const Tensor> in) { return reference_cross_entropy(in[0], in[1], options); };
    row.bf16 = false;
    cases.push_back(std::move(row));
  };
  add("small", 5, 7, {});
  add("one_sample", 1, 10, {});
  add("one_class", 3, 1, {});
  add("smoothed", 5, 7, {.label_smoothing = 0.1});
  add("ignored", 6, 5, {.ignore_index = 255});
  add("ignored_smoothed", 6, 5, {.label_smoothing = 0.2, .ignore_index = 3});
  add("threads", 41, 101, {});
  add("odd_vocabulary", 3, 4103, {});
  add("odd_vocabulary_smoothed", 2, 5001, {.label_smoothing = 0.1});
}

void add_mse(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{7, 13}, Shape{1}, Shape{}, Shape{16411}}) {
    cases.push_back({.name = str("mse/", shape),
                     .inputs = {{shape}, {shape}},
                     .op = [](std::span<const Var> in) { return mse(in[0], in[1]); },
                     .reference = [](std::span<const Tensor> in) {
                       double total = 0.0;
                       for_each_index(in[0].shape(), [&](const Index& i) {
                         total += std::pow(element(in[0], i) - element(in[1], i), 2);
                       });
                       return Tensor::scalar(total / static_cast<double>(in[0].numel()), DType::f64);
                     },
                     .bf16 = false});
  }
}

}  // namespace

std::vector<OpCase> reduction_op_cases() {
  std::vector<OpCase> cases;
  add_reductions(cases);
  add_softmax(cases);
  add_sparse_softmaxes(cases);
  add_cross_entropy(cases);
  add_mse(cases);
  return cases;
}

}  // namespace tessera::testing
