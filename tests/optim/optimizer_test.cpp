#include "optim/builtin.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/config/read.h"
#include "core/support/error.h"
#include "optim/grad_clip.h"
#include "tests/optim/model.h"
#include "tests/support/holder.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

using testing::make_model;
using testing::set_gradients;
using testing::step_state;
using testing::to_doubles;

// One parameter's update in double, written as in the papers.
struct ReferenceState {
  std::vector<double> first;
  std::vector<double> second;
};
using Reference = std::function<void(std::vector<double>& w, const std::vector<double>& g, ReferenceState& s, double lr, int t)>;

Reference sgd_reference(const SgdConfig& config) {
  return [config](std::vector<double>& w, const std::vector<double>& g, ReferenceState& s, double lr, int t) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      double d = g[i] + config.weight_decay * w[i];
      s.first[i] = t == 1 ? d : config.momentum * s.first[i] + d;
      if (config.momentum != 0) d = config.nesterov ? d + config.momentum * s.first[i] : s.first[i];
      w[i] -= lr * d;
    }
  };
}

Reference adamw_reference(const AdamWConfig& config) {
  return [config](std::vector<double>& w, const std::vector<double>& g, ReferenceState& s, double lr, int t) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] *= 1 - lr * config.weight_decay;
      s.first[i] = config.beta1 * s.first[i] + (1 - config.beta1) * g[i];
      s.second[i] = config.beta2 * s.second[i] + (1 - config.beta2) * g[i] * g[i];
      const double mean = s.first[i] / (1 - std::pow(config.beta1, t));
      const double square = s.second[i] / (1 - std::pow(config.beta2, t));
      w[i] -= lr * mean / (std::sqrt(square) + config.eps);
    }
  };
}

void expect_follows(const OptimizerConfig& config, const Reference& reference, DType dtype) {
  const auto model = make_model(dtype);
  const auto parameters = named_parameters(*model);
  const auto optimizer = make_optimizer(config, parameters);
  std::vector<std::vector<double>> expected;
  std::vector<ReferenceState> states;
  for (const NamedParameter& named : parameters) {
    expected.push_back(to_doubles(named.parameter->value()));
    states.push_back({std::vector<double>(expected.back().size()), std::vector<double>(expected.back().size())});
  }
  for (int t = 1; t <= 10; ++t) {
    const double lr = 0.1 / t;
    set_gradients(*model, static_cast<std::uint64_t>(t));
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      reference(expected[k], to_doubles(parameters[k].parameter->grad()), states[k], lr, t);
    }
    optimizer->step(step_state(lr));
  }
  // Ten updates of size 0.1 and values of size 1: a few roundings of each type.
  const double tolerance = dtype == DType::f64 ? 1e-14 : 5e-6;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const auto reached = to_doubles(parameters[k].parameter->value());
    for (std::size_t i = 0; i < reached.size(); ++i) EXPECT_NEAR(reached[i], expected[k][i], tolerance) << parameters[k].path;
  }
}

std::vector<OptimizerConfig> both() {
  return {{SgdConfig{.momentum = 0.9, .nesterov = true, .weight_decay = 1e-2}}, {AdamWConfig{.weight_decay = 0.1}}};
}

// A step's norm has the bytes of clipping's norm on any number of threads. The weights are those of a step that gives no norm.
void expect_norm_of_clipping(const OptimizerConfig& config, DType dtype) {
  SCOPED_TRACE(str(dtype));
  const auto stepped = [&](const Tensor& norm) {
    auto model = std::make_unique<testing::Holder>();
    for (const std::int64_t size : {100'003, 1, 0, 16'384, 40'000, 777}) {
      model->add_parameter(str("w", size), Tensor::full({size}, 0.5, dtype));
    }
    set_gradients(*model, 9);
    const auto parameters = named_parameters(*model);
    const auto optimizer = make_optimizer(config, parameters);
    for (int step = 0; step < 2; ++step) optimizer->step(step_state(0.1), norm);
    std::vector<std::vector<double>> weights;
    for (const NamedParameter& named : parameters) weights.push_back(to_doubles(named.parameter->value()));
    return std::pair(weights, clip_grad_norm(parameters, 1e100).item());
  };
  const auto [weights, expected] = stepped({});
  const int threads = omp_get_max_threads();
  for (const int count : {1, 2, 3, 5}) {
    omp_set_num_threads(count);
    const Tensor norm = Tensor::scalar(-1.0, DType::f64);
    EXPECT_EQ(stepped(norm).first, weights);
    EXPECT_EQ(norm.item(), expected) << count;
  }
  omp_set_num_threads(threads);
}

TEST(Optimizer, GivesTheNormThatClippingGives) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    expect_norm_of_clipping({SgdConfig{}}, dtype);
    expect_norm_of_clipping({AdamWConfig{}}, dtype);
  }
}

TEST(Optimizer, NormIsZeroWithoutAGradientAndTakenInASkippedStep) {
  for (const OptimizerConfig& config : {OptimizerConfig{SgdConfig{}}, OptimizerConfig{AdamWConfig{}}}) {
    const auto model = make_model();
    const auto parameters = named_parameters(*model);
    const auto optimizer = make_optimizer(config, parameters);
    const Tensor norm = Tensor::scalar(-1.0, DType::f64);
    optimizer->step(step_state(0.1), norm);
    EXPECT_EQ(norm.item(), 0);
    set_gradients(*model, 1);
    const StepState skipped = step_state(0.1);
    static_cast<StepStateData*>(skipped.tensor().raw())->skip = 1;
    const State before = optimizer->state();
    const auto weight = to_doubles(parameters[0].parameter->value());
    optimizer->step(skipped, norm);
    EXPECT_EQ(norm.item(), clip_grad_norm(parameters, 1e100).item());
    EXPECT_EQ(to_doubles(parameters[0].parameter->value()), weight);
    for (const auto& [name, tensor] : optimizer->state().tensors) {
      EXPECT_EQ(to_doubles(tensor), to_doubles(before.tensors.at(name))) << name;
    }
    optimizer->step(step_state(0.1), norm);
    EXPECT_NE(to_doubles(parameters[0].parameter->value()), weight);
  }
}

TEST(Sgd, FollowsTheFormula) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const SgdConfig& config :
         {SgdConfig{.momentum = 0}, SgdConfig{.momentum = 0, .weight_decay = 0.05}, SgdConfig{.momentum = 0.9},
          SgdConfig{.momentum = 0.9, .weight_decay = 0.05}, SgdConfig{.momentum = 0.8, .nesterov = true, .weight_decay = 0.05}}) {
      SCOPED_TRACE(str(name_of(dtype), " momentum ", config.momentum, " nesterov ", config.nesterov));
      expect_follows({config}, sgd_reference(config), dtype);
    }
  }
}

TEST(AdamW, FollowsTheFormula) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const AdamWConfig& config :
         {AdamWConfig{}, AdamWConfig{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.3}}) {
      expect_follows({config}, adamw_reference(config), dtype);
    }
  }
}

TEST(Optimizer, SparesEmbeddingsFromDecay) {
  for (const bool decayed : {true, false}) {
    for (const OptimizerConfig& config : {OptimizerConfig{SgdConfig{.weight_decay = 0.5, .decay_norm_bias = decayed}},
                                          OptimizerConfig{AdamWConfig{.weight_decay = 0.5, .decay_norm_bias = decayed}}}) {
      Parameter table("weight", Tensor::full({3, 2}, 1.0), ParameterRole::embedding);
      table.set_grad(Tensor::zeros({3, 2}));
      make_optimizer(config, {{"tokens.weight", &table}})->step(step_state(0.1));
      EXPECT_EQ(to_doubles(table.value()) != std::vector<double>(6, 1.0), decayed);
    }
  }
}

TEST(Optimizer, SparesNormsAndBiasesFromDecay) {
  for (const OptimizerConfig& config : {OptimizerConfig{SgdConfig{.weight_decay = 0.5, .decay_norm_bias = false}},
                                        OptimizerConfig{AdamWConfig{.weight_decay = 0.5, .decay_norm_bias = false}}}) {
    const auto model = make_model();
    const auto parameters = named_parameters(*model);
    const auto optimizer = make_optimizer(config, parameters);
    std::vector<std::vector<double>> before;
    for (const NamedParameter& named : parameters) {
      before.push_back(to_doubles(named.parameter->value()));
      named.parameter->set_grad(Tensor::zeros(named.parameter->value().shape()));
    }
    optimizer->step(step_state(0.1));
    EXPECT_NE(to_doubles(parameters[0].parameter->value()), before[0]);
    EXPECT_EQ(to_doubles(parameters[1].parameter->value()), before[1]);
    EXPECT_EQ(to_doubles(parameters[2].parameter->value()), before[2]);
  }
}

TEST(Optimizer, MaskedWeightsAndStateStayZero) {
  for (const OptimizerConfig& config : both()) {
    const auto model = make_model();
    const auto parameters = named_parameters(*model);
    Parameter& weight = *parameters[0].parameter;
    const auto optimizer = make_optimizer(config, parameters);
    // Momentum from dense steps must not push a weight that is pruned later.
    for (std::uint64_t t = 0; t < 3; ++t) {
      set_gradients(*model, t);
      optimizer->step(step_state(0.1));
    }
    std::vector<std::uint8_t> mask(15, 1);
    for (const std::size_t i : {0u, 4u, 7u, 14u}) mask[i] = 0;
    weight.set_mask(Tensor::from(mask, {3, 5}));
    for (std::uint64_t t = 0; t < 100; ++t) {
      set_gradients(*model, t);
      optimizer->step(step_state(0.1));
      for (std::size_t i = 0; i < mask.size(); ++i) {
        ASSERT_EQ(weight.value().data<float>()[i] == 0.0f, mask[i] == 0) << "step " << t << ", element " << i;
      }
    }
    for (const auto& [key, tensor] : optimizer->state().tensors) {
      if (!key.starts_with("conv.weight.") || key.ends_with("updates")) continue;
      for (std::size_t i = 0; i < mask.size(); ++i) EXPECT_EQ(tensor.data<float>()[i] == 0.0f, mask[i] == 0) << key;
    }
  }
}

TEST(Optimizer, SkipsFrozenParametersAndThoseWithoutGradient) {
  for (const OptimizerConfig& config : both()) {
    const auto model = make_model();
    const auto parameters = named_parameters(*model);
    const auto optimizer = make_optimizer(config, parameters);
    set_gradients(*model, 1);
    parameters[0].parameter->zero_grad();
    parameters[1].parameter->set_trainable(false);
    const auto first = to_doubles(parameters[0].parameter->value());
    const auto second = to_doubles(parameters[1].parameter->value());
    const auto third = to_doubles(parameters[2].parameter->value());
    optimizer->step(step_state(0.1));
    EXPECT_EQ(to_doubles(parameters[0].parameter->value()), first);
    EXPECT_EQ(to_doubles(parameters[1].parameter->value()), second);
    EXPECT_NE(to_doubles(parameters[2].parameter->value()), third);
  }
}

TEST(Optimizer, StateRoundTripGoesOnToIdenticalBytes) {
  for (const OptimizerConfig& config : both()) {
    const auto run = [&](bool interrupted) {
      const auto model = make_model();
      auto optimizer = make_optimizer(config, named_parameters(*model));
      for (std::uint64_t t = 0; t < 12; ++t) {
        if (interrupted && t == 5) {
          const State saved = optimizer->state();
          optimizer = make_optimizer(config, named_parameters(*model));
          optimizer->load_state(saved);
        }
        set_gradients(*model, t);
        optimizer->step(step_state(0.05));
      }
      std::vector<std::vector<float>> values;
      for (const NamedParameter& named : named_parameters(*model)) values.push_back(named.parameter->value().to_vector<float>());
      for (const auto& [key, tensor] : optimizer->state().tensors) {
        if (tensor.dtype() == DType::f32) values.push_back(tensor.to_vector<float>());
      }
      return values;
    };
    EXPECT_EQ(run(false), run(true));
  }
}

std::string load_failure(Optimizer& optimizer, const State& state) {
  return message_of<IoError>([&] { optimizer.load_state(state); });
}

TEST(Optimizer, RefusesAStateThatDoesNotFit) {
  const auto model = make_model();
  const auto sgd = make_optimizer({SgdConfig{}}, named_parameters(*model));
  const auto adamw = make_optimizer({AdamWConfig{}}, named_parameters(*model));
  EXPECT_EQ(load_failure(*sgd, adamw->state()), "sgd: the saved state is \"adamw\"");
  State missing = sgd->state();
  missing.tensors.erase("conv.bias.momentum");
  EXPECT_EQ(load_failure(*sgd, missing), "sgd: the saved state has no tensor 'conv.bias.momentum'");
  State extra = sgd->state();
  extra.tensors.emplace("gone.weight.momentum", Tensor::zeros({1}));
  EXPECT_EQ(load_failure(*sgd, extra), "sgd: the saved state has 4 tensors, the model needs 3");
  State other = sgd->state();
  other.tensors["conv.bias.momentum"] = Tensor::zeros({4});
  EXPECT_NE(load_failure(*sgd, other).find("'conv.bias.momentum' is f32 [4] on cpu, needs f32 [3] on cpu"), std::string::npos);
}

TEST(Optimizer, ReadsItsBlock) {
  const auto adamw = read<OptimizerConfig>(parse_json(R"({"name": "adamw", "beta2": 0.95})", "test"));
  EXPECT_EQ(std::get<AdamWConfig>(adamw.form).beta2, 0.95);
  EXPECT_EQ(adamw.lr(), 1e-3);
  for (const char* json : {R"({"name": "adan"})", R"({"name": "sgd", "beta1": 0.9})", R"({"name": "sgd", "momentum": 1})",
                           R"({"name": "sgd", "momentum": 0, "nesterov": true})"}) {
    EXPECT_THROW(read<OptimizerConfig>(parse_json(json, "test")), ConfigError) << json;
  }
}

}  // namespace
}  // namespace tessera
