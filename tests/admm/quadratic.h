// A model of one layer "fc" that training takes to a target, for tests of what a constraint makes of it.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "admm/admm.h"
#include "core/linalg/svd.h"
#include "core/rng.h"
#include "tests/support/holder.h"

namespace tessera::testing {

inline Tensor random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed, DType dtype = DType::f64) {
  const Tensor x = Tensor::empty({rows, columns}, dtype);
  fill_normal(x, RngStream(seed, "test", "matrix"), 0, 1);
  return x;
}

// U diag(values) V' with random U and V.
inline Tensor matrix_of(const std::vector<double>& values, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  const linalg::Svd random = linalg::svd(random_matrix(rows, columns, seed));
  const Tensor a = Tensor::zeros({rows, columns}, DType::f64);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t k = 0; k < std::ssize(values); ++k) {
        a.data<double>()[i * columns + j] += random.u.data<double>()[i * random.u.dim(1) + k] *
                                             values[static_cast<std::size_t>(k)] *
                                             random.v.data<double>()[j * random.v.dim(1) + k];
      }
    }
  }
  return a;
}

// The nearest matrix of the rank.
inline Tensor truncated(const Tensor& a, std::int64_t rank) {
  const linalg::Svd svd = linalg::svd(a);
  const Tensor y = Tensor::zeros(a.shape(), DType::f64);
  for (std::int64_t i = 0; i < a.dim(0); ++i) {
    for (std::int64_t j = 0; j < a.dim(1); ++j) {
      for (std::int64_t k = 0; k < rank; ++k) {
        y.data<double>()[i * a.dim(1) + j] +=
            svd.u.data<double>()[i * svd.u.dim(1) + k] * svd.s.data<double>()[k] * svd.v.data<double>()[j * svd.v.dim(1) + k];
      }
    }
  }
  return y;
}

// A weight and a bias, "fc.weight" and "fc.bias".
inline std::unique_ptr<Module> one_layer(const Tensor& weight) {
  auto model = std::make_unique<Holder>();
  auto& fc = static_cast<Holder&>(model->add_child("fc", std::make_unique<Holder>()));
  fc.add_parameter("weight", weight.clone());
  fc.add_parameter("bias", Tensor::zeros({weight.dim(0)}, weight.dtype()), ParameterRole::bias);
  return model;
}

inline LowRankConfig svd_config() {
  LowRankConfig config;
  config.layers = "fc";
  config.format = "svd";
  return config;
}

inline std::vector<ConstrainedLayer> rank_of_fc(std::int64_t rank) {
  return {{"fc", low_rank_constraint(svd_config(), {{"rank", rank}})}};
}

inline AdmmConfig admm_config(double rho) {
  AdmmConfig config;
  static_cast<LowRankConfig&>(config) = svd_config();
  config.rho = rho;
  config.update = Duration::steps(1);
  return config;
}

// Steps that minimise ||W - target||^2 / 2 under what the hook adds to the gradient, each followed by an update. In f64.
inline void minimise(Admm& admm, Module& model, const Tensor& target, int steps) {
  Parameter& weight = model.child("fc").parameter("weight");
  StepState state;
  for (int step = 0; step < steps; ++step) {
    StepStateData data;
    admm.on_step_begin(model, step, data);
    state.set(data);
    const Tensor gradient = Tensor::empty(target.shape(), DType::f64);
    for (std::int64_t i = 0; i < target.numel(); ++i) {
      gradient.data<double>()[i] = weight.value().data<double>()[i] - target.data<double>()[i];
    }
    weight.set_grad(gradient);
    admm.after_backward(model, state);
    const double size = 1 / (1 + admm.rho());  // of the step that ends at the minimum
    for (std::int64_t i = 0; i < target.numel(); ++i) {
      weight.value().data<double>()[i] -= size * gradient.data<double>()[i];
    }
    admm.between_steps(model, step + 1);
  }
}

inline double largest_difference(const Tensor& x, const Tensor& y) {
  double largest = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) largest = std::max(largest, std::abs(x.data<double>()[i] - y.data<double>()[i]));
  return largest;
}

}  // namespace tessera::testing
