// Rows for operations without a sum: arithmetic, functions of one operand, dropout, where.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>

#include "core/device/step_state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/dropout.h"
#include "core/ops/gelu.h"
#include "core/ops/relu.h"
#include "core/ops/swiglu.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"
#include "tests/support/op_cases.h"
#include "tests/support/reference.h"

namespace tessera::testing {
namespace {

using Unary = Var (*)(const Var&);
using Binary = Var (*)(const Var&, const Var&);

// One row per shape: a scalar, one element, none, a prime, one more than a vector, and more than one thread's part.
void add_unary(std::vector<OpCase>& cases, const std::string& name, std::function<Var(const Var&)> f,
               std::function<double(double)> reference, double low = -2.0, double high = 2.0, double avoid = -1e30) {
  const std::vector<std::pair<std::string, Shape>> shapes{{"scalar", {}},       {"one", {1, 1}},   {"zero", {3, 0}},
                                                          {"prime", {7, 13}},   {"past_block", {33}}, {"threads", {2, 8209}}};
  for (const auto& [variant, shape] : shapes) {
    OpCase row;
    row.name = name + "/" + variant;
    row.inputs = {{shape, true, low, high, avoid}};
    row.op = [f](std::span<const Var> in) { return f(in[0]); };
    row.reference = [reference](std::span<const Tensor> in) {
      return build(in[0].shape(), [&](const Index& i) { return reference(element(in[0], i)); });
    };
    cases.push_back(std::move(row));
  }
}

void add_binary(std::vector<OpCase>& cases, const std::string& name, Binary f, std::function<double(double, double)> reference,
                double low_b = -2.0) {
  const std::vector<std::pair<std::string, std::pair<Shape, Shape>>> shapes{
      {"same", {{7, 13}, {7, 13}}},      {"scalar_b", {{5, 3}, {}}},        {"scalar_a", {{}, {5, 3}}},
      {"bias", {{4, 5, 3}, {3}}},        {"column", {{5, 3}, {5, 1}}},      {"outer", {{5, 1}, {1, 7}}},
      {"middle", {{2, 1, 3}, {4, 1}}},   {"zero", {{0, 3}, {3}}},           {"one", {{1}, {1, 1}}},
      {"threads", {{257, 67}, {67}}},    {"full_sum", {{131, 129}, {1}}},   {"wide", {{2, 8209}, {8209}}}};
  for (const auto& [variant, pair] : shapes) {
    OpCase row;
    row.name = name + "/" + variant;
    row.inputs = {{pair.first, true, -2.0, 2.0}, {pair.second, true, low_b, 2.0}};
    row.op = [f](std::span<const Var> in) { return f(in[0], in[1]); };
    row.reference = [reference](std::span<const Tensor> in) {
      return build(broadcast_shapes(in[0].shape(), in[1].shape(), "reference"),
                   [&](const Index& i) { return reference(element(in[0], i), element(in[1], i)); });
    };
    cases.push_back(std::move(row));
  }
}

void add_dropout(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{7, 13}, Shape{1}, Shape{0}, Shape{2, 8209}}) {
    constexpr double p = 0.3;
    const RngStream stream(11, "dropout", "mask");
    OpCase row;
    row.name = str("dropout/", shape);
    row.inputs = {{shape}};
    const auto states = std::make_shared<std::map<std::string, StepState>>();  // one on each device
    row.op = [stream, states](std::span<const Var> in) {
      const auto [state, fresh] = states->try_emplace(in[0].device().name(), in[0].device());
      if (fresh) state->second.set({.step = 5, .micro_step = 2});
      return dropout(in[0], p, stream, state->second.tensor());
    };
    row.reference = [stream](std::span<const Tensor> in) {
      std::uint64_t position = 0;
      return build(in[0].shape(), [&](const Index& i) {
        const double u = random_u32(stream, (std::uint64_t{5} << 20) + 2, position++) * 0x1p-32;
        return u < p ? 0.0 : element(in[0], i) / (1.0 - p);
      });
    };
    cases.push_back(std::move(row));
  }
}

void add_where(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& mask, const Shape& a, const Shape& b) {
    OpCase row;
    row.name = "where/" + variant;
    row.inputs = {{mask, false, -1.0, 1.0, 0.0}, {a}, {b}};
    row.recordable = false;
    row.op = [](std::span<const Var> in) {
      const Tensor take = in[0].value().to(Device::cpu()).to(DType::f64).contiguous();
      const Tensor bits = Tensor::empty(take.shape(), DType::u8);
      for (std::int64_t i = 0; i < take.numel(); ++i) bits.data<std::uint8_t>()[i] = take.data<double>()[i] > 0;
      return where(bits.to(in[0].device()), in[1], in[2]);
    };
    row.reference = [](std::span<const Tensor> in) {
      const Shape ab = broadcast_shapes(in[1].shape(), in[2].shape(), "reference");
      return build(broadcast_shapes(in[0].shape(), ab, "reference"),
                   [&](const Index& i) { return element(in[0], i) > 0 ? element(in[1], i) : element(in[2], i); });
    };
    cases.push_back(std::move(row));
  };
  add("same", {7, 13}, {7, 13}, {7, 13});
  add("broadcast", {5, 1}, {3}, {2, 5, 3});
  add("scalar", {}, {3}, {});
  add("zero", {0, 3}, {3}, {1, 3});
}

double reference_gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double reference_sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

void add_swiglu(std::vector<OpCase>& cases) {
  const auto reference = [](std::span<const Tensor> in) {
    Shape shape = in[0].shape();
    const int last = shape.rank() - 1;
    const std::int64_t n = shape[last] / 2;
    shape.set(last, n);
    return build(shape, [&](const Index& i) {
      Index behind = i;
      behind.back() += n;
      const double gate = element(in[0], i);
      return gate * reference_sigmoid(gate) * element(in[0], behind);
    });
  };
  const std::vector<std::pair<std::string, Shape>> shapes{{"one", {2}},           {"pairs", {5, 2}},  {"zero_rows", {0, 6}},
                                                          {"zero", {3, 0}},       {"prime", {7, 26}}, {"packs", {3, 5, 64}},
                                                          {"threads", {2, 16418}}};
  for (const auto& [variant, shape] : shapes) {
    OpCase row = op_case(
        "swiglu/" + variant, {shape}, [](std::span<const Var> in) { return swiglu(in[0]); }, reference);
    row.inputs[0].low = -5, row.inputs[0].high = 5;
    cases.push_back(std::move(row));
  }
}

}  // namespace

std::vector<OpCase> elementwise_op_cases() {
  std::vector<OpCase> cases;
  add_binary(cases, "add", add, [](double a, double b) { return a + b; });
  add_binary(cases, "sub", sub, [](double a, double b) { return a - b; });
  add_binary(cases, "mul", mul, [](double a, double b) { return a * b; });
  add_binary(cases, "div", div, [](double a, double b) { return a / b; }, 0.5);
  add_unary(cases, "add_scalar", [](const Var& x) { return add_scalar(x, 1.5); }, [](double x) { return x + 1.5; });
  add_unary(cases, "mul_scalar", [](const Var& x) { return mul_scalar(x, -3.0); }, [](double x) { return -3.0 * x; });
  add_unary(cases, "rsub_scalar", [](const Var& x) { return rsub_scalar(0.5, x); }, [](double x) { return 0.5 - x; });
  add_unary(cases, "rdiv_scalar", [](const Var& x) { return rdiv_scalar(2.0, x); }, [](double x) { return 2.0 / x; }, 0.5);
  add_unary(cases, "neg", Unary{neg}, [](double x) { return -x; });
  add_unary(cases, "exp", Unary{exp}, [](double x) { return std::exp(x); });
  add_unary(cases, "log", Unary{log}, [](double x) { return std::log(x); }, 0.5);
  add_unary(cases, "sqrt", Unary{sqrt}, [](double x) { return std::sqrt(x); }, 0.5);
  add_unary(cases, "sigmoid", Unary{sigmoid}, reference_sigmoid, -20.0, 20.0);
  add_unary(cases, "tanh", Unary{tanh}, [](double x) { return std::tanh(x); }, -5.0, 5.0);
  add_unary(cases, "silu", Unary{silu}, [](double x) { return x * reference_sigmoid(x); }, -5.0, 5.0);
  add_unary(cases, "pow2", [](const Var& x) { return pow(x, 2.0); }, [](double x) { return x * x; });
  add_unary(cases, "pow_minus_half", [](const Var& x) { return pow(x, -0.5); }, [](double x) { return std::pow(x, -0.5); }, 0.5);
  add_unary(cases, "pow0", [](const Var& x) { return pow(x, 0.0); }, [](double) { return 1.0; });
  add_unary(cases, "clamp_low", [](const Var& x) { return clamp(x, -0.5, 100.0); }, [](double x) { return std::max(x, -0.5); },
            -2.0, 2.0, -0.5);
  add_unary(cases, "clamp_high", [](const Var& x) { return clamp(x, -100.0, 0.7); }, [](double x) { return std::min(x, 0.7); },
            -2.0, 2.0, 0.7);
  add_unary(cases, "relu", Unary{relu}, [](double x) { return std::max(x, 0.0); }, -1.0, 1.0, 0.0);
  add_unary(cases, "gelu_erf", [](const Var& x) { return gelu(x); },
            [](double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }, -4.0, 4.0);
  add_unary(cases, "gelu_tanh", [](const Var& x) { return gelu(x, GeluForm::tanh); }, reference_gelu_tanh, -4.0, 4.0);
  for (OpCase& row : cases) {
    if (row.name == "tanh/scalar") row.bf16_roundings = 256;  // y is saved as 1, so 1 - y^2 is 0
  }
  add_swiglu(cases);
  add_dropout(cases);
  add_where(cases);
  return cases;
}

}  // namespace tessera::testing
