#include "core/linalg/contract.h"

#include <memory>
#include <vector>

#include "core/device/dispatch.h"
#include "core/device/plan_cache.h"
#include "core/dtype.h"
#include "core/linalg/contract_run.h"
#include "core/support/error.h"

namespace tessera::linalg {
namespace {

struct Planned {
  Equation equation;
  ContractRun run;
  Shape shape;  // of the result
};

void check_operands(std::string_view equation, const Tensor& a, const Tensor& b) {
  TESSERA_CHECK(a.device() == b.device(), DeviceError, "contract: '", equation, "': devices differ: operand 1 is ", describe(a),
                ", operand 2 is ", describe(b), "; both must be equal");
  TESSERA_CHECK(a.dtype() == b.dtype() && (a.dtype() == DType::f32 || a.dtype() == DType::f64), DTypeError, "contract: '",
                equation, "': dtypes are ", a.dtype(), " and ", b.dtype(), "; both need f32, or both f64");
}

std::shared_ptr<Planned> make_plan(std::string_view text, const Tensor& a, const Tensor& b, ContractCopies copies) {
  Planned planned{parse_equation(text), {}, {}};
  const Equation& equation = planned.equation;
  TESSERA_CHECK(equation.operands.size() == 2, ShapeError, "contract: '", text, "' names ", equation.operands.size(),
                " operands; two tensors are given");
  const Tensor operands[] = {a, b};
  const IndexSizes sizes = index_sizes(equation, operands);
  std::vector<std::int64_t> shape;
  for (const char label : equation.output) shape.push_back(sizes.at(label));
  planned.shape = Shape(std::span<const std::int64_t>(shape));
  const auto layout = [&](std::size_t i) {
    return IndexLayout{equation.operands[i], {operands[i].strides().begin(), operands[i].strides().end()}};
  };
  planned.run = plan_run({layout(0), layout(1), dense_layout(equation.output, sizes)}, sizes, copies);
  return std::make_shared<Planned>(std::move(planned));
}

// Plans depend on the equation and the layout of the elements, not on their values. Costs are only known for the CPU.
std::shared_ptr<Planned> plan_of(std::string_view text, const Tensor& a, const Tensor& b, ContractCopies copies) {
  thread_local PlanCache<Planned> cache;
  if (a.device().is_cuda()) copies = ContractCopies::where_needed;
  std::vector<std::int64_t> key(text.begin(), text.end());
  key.push_back(copies == ContractCopies::where_needed ? -2 : -3);
  for (const Tensor* const operand : {&a, &b}) {
    key.push_back(-1);
    key.insert(key.end(), operand->shape().begin(), operand->shape().end());
    key.push_back(-1);
    key.insert(key.end(), operand->strides().begin(), operand->strides().end());
  }
  return cache.get(std::move(key), [&] { return make_plan(text, a, b, copies); });
}

// `tensor` with the indices of `from` in the order `to`; a view.
Tensor reorder(const Tensor& tensor, const std::string& from, const std::string& to) {
  std::vector<int> axes;
  for (const char label : to) axes.push_back(static_cast<int>(from.find(label)));
  return tensor.permute(axes);
}

Tensor operand(const Planned& planned, std::size_t i, const Tensor& tensor) {
  const std::string& order = planned.run.copied[i];
  return order.empty() ? tensor : reorder(tensor, planned.equation.operands[i], order).clone();
}

// Runs the product for each choice of the indices of loops[depth], loops[depth + 1], ...; `data` may be a GPU's.
void multiply(const ContractRun& run, std::size_t depth, const Tensor& y, std::array<char*, 3> data) {
  if (depth == run.loops.size()) {
    const std::size_t first = run.swapped ? kRight : kLeft;
    const StridedOperands operands{y.device(), y.dtype(), data[first], data[kLeft + kRight - first], data[kResult]};
    return TESSERA_BACKEND(y.device(), strided_matmul, run.product, operands);
  }
  const ContractRun::Loop& loop = run.loops[depth];
  for (std::int64_t i = 0; i < loop.size; ++i) {
    multiply(run, depth + 1, y, data);
    for (std::size_t t = 0; t < data.size(); ++t) data[t] += loop.strides[t] * static_cast<std::int64_t>(size_of(y.dtype()));
  }
}

}  // namespace

ContractPlan plan_contract(std::string_view equation, const Tensor& a, const Tensor& b, ContractCopies copies) {
  return plan_of(equation, a, b, copies)->run.plan;
}

Tensor contract(std::string_view equation, const Tensor& a, const Tensor& b, ContractCopies copies) {
  check_operands(equation, a, b);
  const auto planned = plan_of(equation, a, b, copies);
  const ContractRun& run = planned->run;
  if (run.plan.calls == 0) return Tensor::zeros(planned->shape, a.dtype(), a.device());
  const Tensor left = operand(*planned, kLeft, a);
  const Tensor right = operand(*planned, kRight, b);
  const std::string& output = planned->equation.output;
  const std::string& order = run.copied[kResult];
  const Tensor result = Tensor::empty(planned->shape, a.dtype(), a.device());
  const Tensor y = order.empty() ? result : Tensor::empty(reorder(result, output, order).shape(), a.dtype(), a.device());
  const auto bytes = [](const Tensor& tensor) { return static_cast<char*>(tensor.raw()); };
  multiply(run, 0, y, {bytes(left), bytes(right), bytes(y)});
  if (!order.empty()) result.copy_from(reorder(y, order, output));
  return result;
}

}  // namespace tessera::linalg
