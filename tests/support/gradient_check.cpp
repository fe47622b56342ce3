#include "tests/support/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "core/autograd/backward.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera::testing {
namespace {

using Function = std::function<Var(std::span<const Var>)>;

constexpr std::int64_t kEveryElement = 64;
constexpr int kDirections = 3;

double dot(const Tensor& a, const Tensor& b) {
  const Tensor left = a.contiguous();
  const Tensor right = b.contiguous();
  double total = 0.0;
  for (std::int64_t i = 0; i < left.numel(); ++i) total += left.data<double>()[i] * right.data<double>()[i];
  return total;
}

// A function f and the inputs around which it is differentiated.
class Differences {
 public:
  Differences(const Function& f, std::span<const Tensor> inputs, const GradientCheckOptions& options)
      : f_(f), inputs_(inputs.begin(), inputs.end()), options_(options) {}

  // d/dt of the projected output at inputs[which] + t * direction.
  double along(std::size_t which, const Tensor& direction) const {
    return (shifted(which, direction, options_.step) - shifted(which, direction, -options_.step)) / (2.0 * options_.step);
  }

  std::string compare(std::size_t which, const Tensor& grad) const {
    const Tensor& x = inputs_[which];
    const bool every = x.numel() <= kEveryElement;
    const RngStream stream(options_.seed, "gradient_check", "direction");
    for (std::int64_t i = 0; i < (every ? x.numel() : kDirections); ++i) {
      const Tensor direction = Tensor::zeros(x.shape(), DType::f64);
      if (every) direction.data<double>()[i] = 1.0;
      else fill_normal(direction, stream, 0.0, 1.0, static_cast<std::uint64_t>(i));
      const double numeric = along(which, direction);
      const double analytic = dot(grad, direction);
      if (!(std::abs(analytic - numeric) <= options_.tolerance * std::max(1.0, std::abs(numeric)))) {
        return str("gradient of input ", which, " ", x.shape(), every ? ", element " : ", direction ", i, ": is ", analytic,
                   ", differences give ", numeric);
      }
    }
    return {};
  }

 private:
  double shifted(std::size_t which, const Tensor& direction, double distance) const {
    const NoGrad no_grad;
    std::vector<Var> vars;
    for (std::size_t i = 0; i < inputs_.size(); ++i) vars.emplace_back(i == which ? inputs_[i].clone() : inputs_[i]);
    double* x = vars[which].value().data<double>();
    for (std::int64_t i = 0; i < direction.numel(); ++i) x[i] += distance * direction.data<double>()[i];
    const Tensor y = f_(vars).value();
    if (!weights_.defined()) weights_ = projection(y, options_.seed);
    return dot(weights_, y);
  }

  const Function& f_;
  std::vector<Tensor> inputs_;
  const GradientCheckOptions& options_;
  mutable Tensor weights_;  // the projection; the first output determines its shape
};

}  // namespace

Tensor projection(const Tensor& y, std::uint64_t seed) {
  const Tensor weights = Tensor::empty(y.shape(), DType::f32);
  fill_uniform(weights, RngStream(seed, "gradient_check", "projection"), -1.0, 1.0);
  return weights.to(DType::bf16).to(y.dtype()).to(y.device());  // the same numbers in every dtype and on every device
}

std::vector<Tensor> projected_gradients(const Function& f, std::span<const Tensor> inputs,
                                        const std::vector<bool>& differentiable, std::uint64_t seed) {
  std::vector<Var> vars;
  for (std::size_t i = 0; i < inputs.size(); ++i) vars.emplace_back(inputs[i], bool{differentiable[i]});
  const Var y = f(vars);
  std::vector<Tensor> grads;
  if (y.requires_grad()) backward(y, projection(y.value(), seed));
  for (std::size_t i = 0; i < inputs.size(); ++i) grads.push_back(differentiable[i] ? vars[i].grad() : Tensor());
  return grads;
}

std::string check_gradients(const Function& f, std::span<const Tensor> inputs, const GradientCheckOptions& options) {
  std::vector<bool> differentiable = options.differentiable;
  if (differentiable.empty()) {
    for (const Tensor& input : inputs) differentiable.push_back(is_floating(input.dtype()));
  }
  const std::vector<Tensor> grads = projected_gradients(f, inputs, differentiable, options.seed);
  const Differences differences(f, inputs, options);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!differentiable[i]) continue;
    if (!grads[i].defined()) return str("input ", i, " ", inputs[i].shape(), " received no gradient");
    if (std::string problem = differences.compare(i, grads[i]); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace tessera::testing
