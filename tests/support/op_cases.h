// The op table: one row per op and shape. It drives forward against a naive double reference, gradient checks in f64 by
// random projection, the f32 gradient against the f64 path, guard bytes and NaN-filled outputs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/autograd/var.h"

namespace tessera::testing {

struct OpInput {
  Shape shape;
  bool differentiable = true;
  double low = -1.0;  // values are uniform in [low, high)
  double high = 1.0;
  double avoid = -1e30;  // keep values at least 0.05 away from this point: a kink of the function
  std::vector<std::int64_t> indices = {};  // not empty: an i64 input with these values
  bool parameter = false;  // of parameter_dtype() beside the other inputs
};

struct OpCase {
  std::string name;  // "conv2d/stride2_pad1_groups2": op, slash, variant
  std::vector<OpInput> inputs;
  std::function<Var(std::span<const Var>)> op;
  // The same function on f64 tensors as plain loops with double accumulators; independent of the kernels.
  std::function<Tensor(std::span<const Tensor>)> reference;
  double f32_relative = 1e-5;  // bound on |y - y_ref| / max|y_ref| in f32; say why where it is larger
  bool bf16 = true;  // false: the op refuses bf16
  bool recordable = true;  // false: the row reads its inputs on the host, which a graph of its work cannot
  double bf16_roundings = 4;  // roundings to bf16 that a gradient may show; say why where it is larger
  double bf16_result_roundings = 1;  // roundings to bf16 that a result on the CPU may show; say why where it is larger
  double half_roundings = 1;  // roundings to bf16 or f16 that a result on a GPU may show
  std::string forced = {};  // the choice by which a GPU runs the row (core/device/decisions.h)
};

// A row whose inputs have these shapes and nothing special.
OpCase op_case(std::string name, const std::vector<Shape>& shapes, std::function<Var(std::span<const Var>)> op,
               std::function<Tensor(std::span<const Tensor>)> reference);

// A row of attention: where a processor multiplies bf16, probabilities, queries times the scale and, in the backward, gradients
// of scores are rounded to it before they are multiplied.
OpCase with_rounded_probabilities(OpCase row);

// The same row with inputs 1 and 2, as far as there are any, as parameters.
OpCase with_parameters(OpCase row);

std::vector<OpCase> elementwise_op_cases();  // op_cases_elementwise.cpp
std::vector<OpCase> reduction_op_cases();  // op_cases_reduction.cpp: reductions, softmax, losses
std::vector<OpCase> view_op_cases();  // op_cases_view.cpp: reshape, permute, slice, concat, pad, gather, where, ...
std::vector<OpCase> dense_op_cases();  // op_cases_dense.cpp: matmul, linear, conv2d
std::vector<OpCase> pool_op_cases();  // op_cases_pool.cpp
std::vector<OpCase> norm_op_cases();  // op_cases_norm.cpp
std::vector<OpCase> attention_op_cases();  // op_cases_attention.cpp
std::vector<OpCase> sparse_attention_op_cases();  // op_cases_sparse_attention.cpp
std::vector<OpCase> all_op_cases();

}  // namespace tessera::testing
