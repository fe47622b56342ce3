// Training steps with SR-STE, whose pull has the form of the optimiser's weight decay.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compress/prune/scores.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/train/run/small_steps.h"
#include "train/run/stage_hooks.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;
constexpr double kLr = 0.125, kLambda = 0.5;

std::unique_ptr<Module> eight_inputs() {
  auto model = std::make_unique<Sequential>();
  model->add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 8, .out = 3}));
  initialize(*model, 1);
  return model;
}

struct Step {
  std::vector<float> before, after;  // values of the weight
  std::map<std::string, std::vector<float>> slots;  // the optimiser's
};

// One step of a stage whose mask follows its weights.
Step one_step(const OptimizerConfig& optimizer, double lambda) {
  StageConfig stage;
  stage.training.optimizer = optimizer;
  stage.training.clip_norm = 0.01;  // far below the norm of the gradients
  stage.prune = PruneConfig();
  stage.prune->layers = Value("fc");
  stage.prune->pattern.pattern = "n_m";
  stage.prune->sr_ste = SrSteConfig{.lambda = lambda};
  stage.prune->sparsity = {.target = 0.5, .schedule = "one_shot"};
  const auto model = eight_inputs();
  const Parameter& weight = model->child("fc").parameter("weight");
  Step step{.before = weight.value().to_vector<float>(), .after = {}, .slots = {}};
  StageTrainer trainer(*model, stage.training, kTask, 1, 4, 4, DType::f32, stage_hooks(stage, {.results = {}}));
  trainer.step(make_batch(6, 8), 0, 0);
  step.after = weight.value().to_vector<float>();
  const State optimizer_state = trainer.state().at("optimizer");
  for (const auto& [name, tensor] : optimizer_state.tensors) {
    if (tensor.dtype() == DType::f32) step.slots[name] = tensor.to_vector<float>();
  }
  return step;
}

bool hidden(const std::vector<float>& weight, std::size_t i) {
  const Tensor scores = magnitudes(Tensor::from(weight, {3, 8}));
  const Tensor mask = NOfMPattern({.n = 2, .m = 4}).project({&scores, 1}, scores.numel()).front();
  return mask.data<std::uint8_t>()[i] == 0;
}

// The pull changes neither the moments nor the clipped norm, however strong it is.
TEST(SrSteStep, UnderAdamWThePullIsDecoupled) {
  const OptimizerConfig adamw{AdamWConfig{.lr = kLr, .weight_decay = 0}};
  const Step with = one_step(adamw, kLambda), without = one_step(adamw, 0);
  ASSERT_EQ(with.slots.count("fc.weight.exp_avg"), 1u);
  EXPECT_EQ(with.slots, without.slots);
  for (std::size_t i = 0; i < with.before.size(); ++i) {
    const double pull = hidden(with.before, i) ? kLr * kLambda * with.before[i] : 0;
    EXPECT_NEAR(with.after[i], without.after[i] - pull, 1e-6) << i;
  }
}

TEST(SrSteStep, UnderSgdThePullIsPartOfTheGradient) {
  const OptimizerConfig sgd{SgdConfig{.lr = kLr, .momentum = 0.9}};
  const Step with = one_step(sgd, kLambda), without = one_step(sgd, 0);
  EXPECT_NE(with.slots.at("fc.weight.momentum"), without.slots.at("fc.weight.momentum"));
  for (const Step& step : {with, without}) {
    double squares = 0;
    for (const auto& [name, momentum] : step.slots) {
      for (const float each : momentum) squares += static_cast<double>(each) * each;
    }
    EXPECT_NEAR(std::sqrt(squares), 0.01, 1e-4) << "clipped as a whole";
  }
}

}  // namespace
}  // namespace tessera
