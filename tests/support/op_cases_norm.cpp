// Rows for normalisation: batch norm alone and with ops that are fused after it, layer norm and RMS norm.
#include <algorithm>
#include <cmath>

#include "core/ops/batch_norm.h"
#include "core/ops/layer_norm.h"
#include "core/ops/rms_norm.h"
#include "tests/support/op_cases.h"
#include "tests/support/reference.h"

namespace tessera::testing {
namespace {

using Inputs = std::span<const Tensor>;
using std::int64_t;

// Normalises x [rows, columns] along the columns (layer) or along the rows (batch).
Tensor norm_reference(Inputs in, bool along_columns) {
  const int64_t columns = in[0].dim(-1);
  const Tensor x = in[0].reshape({columns == 0 ? 0 : in[0].numel() / columns, columns});
  const Tensor y = Tensor::zeros(x.shape(), DType::f64);
  const auto [groups, size] = along_columns ? std::pair(x.dim(0), x.dim(1)) : std::pair(x.dim(1), x.dim(0));
  const auto element = [&](const Tensor& t, int64_t group, int64_t i) -> double& {
    return along_columns ? at(t, group, i) : at(t, i, group);
  };
  for (int64_t group = 0; group < groups; ++group) {
    double mean = 0;
    double var = 0;
    for (int64_t i = 0; i < size; ++i) mean += element(x, group, i) / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) var += std::pow(element(x, group, i) - mean, 2) / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t column = along_columns ? i : group;
      element(y, group, i) = (element(x, group, i) - mean) / std::sqrt(var + 1e-5) * at(in[1], column) + at(in[2], column);
    }
  }
  return y.reshape(in[0].shape());
}

void add_batch_norm(std::vector<OpCase>& cases, const std::string& name, const Shape& x) {
  const auto op = [](std::span<const Var> in) {
    const Tensor mean = Tensor::zeros(in[1].shape(), in[1].dtype(), in[1].device());
    const Tensor var = Tensor::full(in[1].shape(), 1.0, in[1].dtype(), in[1].device());
    return batch_norm(in[0], in[1], in[2], mean, var, {.training = true});
  };
  cases.push_back(with_parameters(
      op_case("batch_norm/" + name, {x, {x.dim(-1)}, {x.dim(-1)}}, op, [](Inputs in) { return norm_reference(in, false); })));
}

struct Fused {
  bool residual, relu;
  bool training = true;
};

// Batch norm followed by an addition and a ReLU, all in one op.
void add_fused_batch_norm(std::vector<OpCase>& cases, const std::string& name, const Shape& x, Fused fused) {
  const auto [residual, relu, training] = fused;
  const auto op = [=](std::span<const Var> in) {
    const Tensor mean = Tensor::full(in[1].shape(), training ? 0.0 : 0.1, in[1].dtype(), in[1].device());
    const Tensor var = Tensor::full(in[1].shape(), 1.0, in[1].dtype(), in[1].device());
    return batch_norm(in[0], in[1], in[2], mean, var, {.training = training, .relu = relu}, residual ? in[3] : Var());
  };
  const auto reference = [=](Inputs in) {
    const Tensor y = training ? norm_reference(in, false) : Tensor::zeros(x, DType::f64);
    const int64_t columns = x.dim(-1);
    for (int64_t i = 0; i < y.numel(); ++i) {
      double& value = y.data<double>()[i];
      const int64_t c = i % columns;
      if (!training) value = (in[0].data<double>()[i] - 0.1) / std::sqrt(1 + 1e-5) * at(in[1], c) + at(in[2], c);
      if (residual) value += in[3].data<double>()[i];
      if (relu) value = std::max(value, 0.0);
    }
    return y;
  };
  std::vector<Shape> inputs{x, {x.dim(-1)}, {x.dim(-1)}};
  if (residual) inputs.push_back(x);
  cases.push_back(with_parameters(op_case("batch_norm/" + name, inputs, op, reference)));
}

void add_layer_norm(std::vector<OpCase>& cases, const std::string& name, const Shape& x) {
  cases.push_back(with_parameters(op_case(
      "layer_norm/" + name, {x, {x.dim(-1)}, {x.dim(-1)}},
      [](std::span<const Var> in) { return layer_norm(in[0], in[1], in[2]); },
      [](Inputs in) { return norm_reference(in, true); })));
}

void add_rms_norm(std::vector<OpCase>& cases, const std::string& name, const Shape& x) {
  const auto reference = [](Inputs in) {
    const int64_t columns = in[0].dim(-1);
    const Tensor y = in[0].clone();
    for (int64_t begin = 0; begin < y.numel(); begin += columns) {
      double* const row = y.data<double>() + begin;
      double squares = 0;
      for (int64_t i = 0; i < columns; ++i) squares += row[i] * row[i];
      for (int64_t i = 0; i < columns; ++i) row[i] *= at(in[1], i) / std::sqrt(squares / static_cast<double>(columns) + 1e-3);
    }
    return y;
  };
  cases.push_back(with_parameters(op_case(
      "rms_norm/" + name, {x, {x.dim(-1)}}, [](std::span<const Var> in) { return rms_norm(in[0], in[1], 1e-3); }, reference)));
}

}  // namespace

std::vector<OpCase> norm_op_cases() {
  std::vector<OpCase> cases;
  add_batch_norm(cases, "images_c7", {3, 5, 4, 7});
  add_batch_norm(cases, "images_c33", {2, 17, 19, 33});
  add_batch_norm(cases, "rows_c16", {67, 16});
  add_batch_norm(cases, "rows_c77", {300, 77});
  add_batch_norm(cases, "batch0", {0, 3, 3, 5});
  add_fused_batch_norm(cases, "relu_c7", {3, 5, 4, 7}, {false, true});
  add_fused_batch_norm(cases, "relu_c33", {2, 7, 9, 33}, {false, true});
  add_fused_batch_norm(cases, "residual_relu_c16", {2, 5, 7, 16}, {true, true});
  add_fused_batch_norm(cases, "residual_relu_c33", {1, 9, 7, 33}, {true, true});
  add_fused_batch_norm(cases, "relu_c77", {1, 3, 4, 77}, {false, true});
  add_fused_batch_norm(cases, "residual_relu_c77", {1, 3, 4, 77}, {true, true});
  add_fused_batch_norm(cases, "residual_c9", {3, 4, 5, 9}, {true, false});
  add_fused_batch_norm(cases, "residual_relu_inference", {3, 5, 4, 7}, {true, true, false});
  add_fused_batch_norm(cases, "relu_inference", {2, 5, 4, 9}, {false, true, false});
  add_fused_batch_norm(cases, "residual_relu_batch0", {0, 3, 3, 5}, {true, true});
  add_layer_norm(cases, "odd", {3, 5, 7});
  add_layer_norm(cases, "wide", {2, 257});
  add_layer_norm(cases, "one_row", {16});
  add_layer_norm(cases, "rows0", {0, 5});
  add_layer_norm(cases, "many_rows_of_64", {200, 64});
  add_layer_norm(cases, "many_rows_of_300", {70, 300});
  add_layer_norm(cases, "rows_of_1028", {37, 1028});
  add_layer_norm(cases, "rows_of_2052", {19, 2052});
  add_layer_norm(cases, "rows_of_8204", {2, 8204});
  add_rms_norm(cases, "odd", {3, 5, 7});
  add_rms_norm(cases, "wide", {2, 257});
  add_rms_norm(cases, "many_rows_of_48", {150, 48});
  add_rms_norm(cases, "packs", {3, 16, 64});
  add_rms_norm(cases, "one_row", {16});
  add_rms_norm(cases, "one", {3, 1});
  add_rms_norm(cases, "rows0", {0, 5});
  add_rms_norm(cases, "columns0", {3, 0});
  return cases;
}

}  // namespace tessera::testing
