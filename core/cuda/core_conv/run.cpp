#include <cstdint>

#include "core/cuda/core_conv/core_conv.h"
#include "core/cuda/core_conv/kernels.h"
#include "core/cuda/kernel/alignment.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

using core_conv::add_splits;
using core_conv::GatherProblem;
using core_conv::WeightProblem;

// Checks that the operand is on a GPU, contiguous and of `numel` elements. Returns its data.
float* operand(const Tensor& tensor, std::int64_t numel, const char* what) {
  TESSERA_CHECK(tensor.device().is_cuda(), DeviceError, "core_conv: ", what, " is ", describe(tensor), "; needs one on a GPU");
  TESSERA_CHECK(tensor.is_contiguous() && tensor.numel() == numel, ShapeError, "core_conv: operand does not fit the plan: ", what,
                " is ", describe(tensor), "; needs ", numel, " contiguous elements");
  return tensor.data<float>();
}

bool takes_quads(const float* data) { return is_aligned(data, 4 * sizeof(float)); }

std::int64_t product(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) { return a * b * c * d; }

void run_gather(const CoreConvPlan& plan, const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& result) {
  GatherProblem problem = plan.gather;
  core_conv::GatherOperands operands{};
  operands.input = operand(input, product(problem.images, problem.in_rows, problem.in_columns, problem.channels), "the input");
  operands.weight = operand(weight, plan.weights, "the weight");
  float* const target = operand(result, problem.numel(), "the result");
  const float* const shift = bias.defined() ? operand(bias, problem.outs, "the bias") : nullptr;
  problem.quads_of_input = problem.quads_of_input && takes_quads(operands.input);
  problem.quads_of_weight = problem.quads_of_weight && takes_quads(operands.weight);

  const bool split = problem.splits > 1;
  const Device device = result.device();
  const Tensor workspace =
      split ? Tensor::empty(Shape({static_cast<std::int64_t>(plan.workspace())}), DType::f32, device) : Tensor();
  operands.bias = split ? nullptr : shift;
  operands.result = split ? workspace.data<float>() : target;
  if (!plan.full) {
    gather_partial(plan.tile, problem, operands, device);
  } else if (problem.stride == 1) {
    gather_full(plan.tile, problem, operands, device);
  } else {
    gather_full_by_two(plan.tile, problem, operands, device);
  }
  if (split) {
    add_splits(
        {.workspace = operands.result, .numel = problem.numel(), .splits = problem.splits, .bias = shift, .outs = problem.outs},
        target, device);
  }
}

void run_weight(const CoreConvPlan& plan, const Tensor& input, const Tensor& gradient, const Tensor& result) {
  WeightProblem problem = plan.weight;
  const float* const x = operand(input, product(problem.images, problem.in_rows, problem.in_columns, problem.channels), "x");
  const float* const g =
      operand(gradient, product(problem.images, problem.out_rows, problem.out_columns, problem.outs), "grad_y");
  float* const target = operand(result, problem.numel(), "grad_weight");
  problem.quads_of_input = problem.quads_of_input && takes_quads(x);
  problem.quads_of_gradient = problem.quads_of_gradient && takes_quads(g);

  const Device device = result.device();
  if (problem.splits == 1) {
    weight_gradient(plan.tile, problem, x, g, target, device);
    return;
  }
  const Tensor workspace = Tensor::empty(Shape({static_cast<std::int64_t>(plan.workspace())}), DType::f32, device);
  weight_gradient(plan.tile, problem, x, g, workspace.data<float>(), device);
  add_splits(
      {.workspace = workspace.data<float>(), .numel = problem.numel(), .splits = problem.splits, .bias = nullptr, .outs = 0},
      target, device);
}

}  // namespace

void run_core_conv(const CoreConvPlan& plan, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& result) {
  if (plan.pass == Conv2dPass::backward_weight) {
    run_weight(plan, a, b, result);
  } else {
    run_gather(plan, a, b, bias, result);
  }
}

}  // namespace tessera::cuda
