#include "train/report/state_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "core/support/error.h"

namespace tessera {
namespace {

std::string described(const Tensor& tensor) { return str(tensor.dtype(), ' ', tensor.shape()); }

bool equal_bytes(const Tensor& a, const Tensor& b) { return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0; }

double distance(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  const double apart = a == b ? 0 : std::abs(a - b);  // equal infinities are 0 apart
  return std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

double greatest_distance(const Tensor& a, const Tensor& b) {
  const Tensor left = a.to(DType::f64);
  const Tensor right = b.to(DType::f64);
  double most = 0;
  for (std::int64_t i = 0; i < left.numel(); ++i)
    most = std::max(most, distance(left.data<double>()[i], right.data<double>()[i]));
  return most;
}

}  // namespace

void TensorDifference::fields(Fields& f) {
  const std::optional<double> apart = what.empty() ? std::optional(max_abs) : std::nullopt;
  f.add("name", name, {.help = "of the tensor"});
  f.add("what", what, {.help = "what differs; empty when only values do"});
  f.add_computed("max_abs", apart, {.help = "greatest |a - b|; null where there is none", .nullable = true});
}

std::vector<TensorDifference> tensor_differences(const State& a, const State& b) {
  std::vector<TensorDifference> found;
  for (const auto& [name, tensor] : a.tensors) {
    const auto other = b.tensors.find(name);
    if (other == b.tensors.end()) {
      found.push_back({name, "only in a: " + described(tensor)});
      continue;
    }
    const Tensor left = tensor.contiguous();
    const Tensor right = other->second.contiguous();
    if (left.shape() != right.shape() || left.dtype() != right.dtype()) {
      found.push_back({name, described(left) + ", " + described(right)});
    } else if (!equal_bytes(left, right)) {
      found.push_back({name, "", greatest_distance(left, right)});
    }
  }
  for (const auto& [name, tensor] : b.tensors) {
    if (!a.tensors.contains(name)) found.push_back({name, "only in b: " + described(tensor)});
  }
  std::ranges::sort(found, {}, &TensorDifference::name);
  return found;
}

std::vector<TensorDifference> greatest(std::vector<TensorDifference> differences, std::size_t most) {
  std::ranges::stable_sort(differences, {}, [](const TensorDifference& difference) {
    return std::tuple(difference.what.empty(), -difference.max_abs);
  });
  if (differences.size() > most) differences.resize(most);
  return differences;
}

}  // namespace tessera
