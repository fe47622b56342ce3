// Rows for reductions, softmax and losses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/cross_entropy.h"
#include "core/ops/mse.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "tests/support/op_cases.h"
#include "tests/support/reference.h"

namespace tessera::testing {
namespace {

// x folded over `axes` from `start`, one result per index of the other axes; axes keep size 1 on request.
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
    if (r.shape.numel() < 1000) cases.push_back(row);  // large f32 draws tie, and then differences see two maxima
  }
  cases.push_back({.name = "sum/zero_summed",
                   .inputs = {{{3, 0}}},
                   .op = [](std::span<const Var> in) { return sum(in[0], {1}); },
                   .reference = [](std::span<const Tensor>) { return Tensor::zeros({3}, DType::f64); }});
}

// x's last-axis rows, each shifted by its maximum: exp of it, or its logarithm.
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
  add_cross_entropy(cases);
  add_mse(cases);
  return cases;
}

}  // namespace tessera::testing
