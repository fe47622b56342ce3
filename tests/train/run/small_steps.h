// A small network, a batch for it and the plainest rule, for tests of steps.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "core/nn/module.h"
#include "core/rng.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "train/data/batch.h"
#include "train/experiment.h"

namespace tessera {

inline std::unique_ptr<Module> make_model() {
  auto model = std::make_unique<Sequential>();
  model->add_child("fc1", std::make_unique<Linear>(LinearConfig{.in = 5, .out = 7}));
  model->add_child("fc2", std::make_unique<Linear>(LinearConfig{.in = 7, .out = 3}));
  initialize(*model, 1);
  return model;
}

inline Batch make_batch(std::int64_t samples, std::int64_t features = 5) {
  Batch batch{{"image", Tensor::empty({samples, features})}, {"label", Tensor::zeros({samples}, DType::i64)}};
  fill_normal(batch.at("image"), RngStream(3, "test", "x"), 0, 1);
  for (std::int64_t i = 0; i < samples; ++i) batch.at("label").data<std::int64_t>()[i] = i % 3;
  return batch;
}

// Without momentum and decay a step moves the weights by lr times the gradient: weights show gradients.
inline TrainingConfig plain_sgd(double lr) {
  TrainingConfig config;
  config.optimizer.form = SgdConfig{.lr = lr, .momentum = 0};
  return config;
}

inline std::vector<float> weights_of(Module& model) {
  std::vector<float> values;
  for (const NamedParameter& entry : named_parameters(model)) {
    const std::vector<float> part = entry.parameter->value().to_vector<float>();
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

inline void expect_near(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(squares);
}

}  // namespace tessera
