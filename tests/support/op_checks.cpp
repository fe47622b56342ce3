#include "tests/support/op_checks.h"

#include <cctype>
#include <cstring>

namespace tessera::testing {

std::vector<bool> differentiable(const OpCase& row) {
  std::vector<bool> flags;
  for (const OpInput& input : row.inputs) flags.push_back(input.differentiable && input.indices.empty());
  return flags;
}

Tensor forward(const OpCase& row, std::span<const Tensor> inputs) {
  std::vector<Var> vars;
  for (const Tensor& input : inputs) vars.emplace_back(input);
  return row.op(vars).value();
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  const Tensor left = a.to(Device::cpu()).contiguous();
  const Tensor right = b.to(Device::cpu()).contiguous();
  return left.shape() == right.shape() && std::memcmp(left.raw(), right.raw(), left.bytes()) == 0;
}

std::vector<Tensor> widened(std::span<const Tensor> inputs) {
  std::vector<Tensor> exact;
  for (const Tensor& input : inputs) exact.push_back(is_floating(input.dtype()) ? input.to(DType::f64) : input);
  return exact;
}

std::string test_name(const OpCase& row) {
  std::string name;
  for (const char c : row.name) {
    const bool legal = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (legal || (!name.empty() && name.back() != '_')) name += legal ? c : '_';
  }
  return name;
}

}  // namespace tessera::testing
