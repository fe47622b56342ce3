#include "admm/admm.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/linalg/relative_error.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "tests/admm/quadratic.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

using testing::admm_config;
using testing::largest_difference;
using testing::matrix_of;
using testing::minimise;
using testing::one_layer;
using testing::random_matrix;
using testing::rank_of_fc;
using testing::truncated;

constexpr std::int64_t kRank = 3;

// The hook of a stage with this number of updates, one after each step.
Admm hook(const AdmmConfig& config, Module& model, std::int64_t updates = 1000) {
  StepSlots slots;
  return Admm(config, rank_of_fc(kRank), model, {.steps = updates, .steps_per_epoch = updates}, slots);
}

const Tensor& weight_of(Module& model) { return model.child("fc").parameter("weight").value(); }

class LogLines {
 public:
  LogLines() {
    set_log_sink([this](LogLevel, std::string_view line) { lines_.emplace_back(line); });
  }
  ~LogLines() { set_log_sink({}); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

TEST(Admm, EndsAtTheTruncatedSvdForRhoOfOneAndMore) {
  const Tensor a = random_matrix(12, 9, 1);
  for (const double rho : {1.0, 2.0, 10.0}) {
    SCOPED_TRACE(rho);
    const auto model = one_layer(a);
    Admm admm = hook(admm_config(rho), *model);
    admm.on_stage_begin(*model);
    minimise(admm, *model, a, 1000);
    EXPECT_LT(largest_difference(weight_of(*model), truncated(a, kRank)), 1e-6);
    EXPECT_LT(admm.history().back().relative, 1e-6);
    EXPECT_EQ(course_of(admm.history()), Course::falling);
  }
}

// Least squares: the best weight with k elements keeps the k largest.
TEST(Admm, EndsAtTheLargestElementsUnderTopK) {
  const Tensor a = random_matrix(12, 9, 4);
  const auto model = one_layer(a);
  StepSlots slots;
  std::vector<ConstrainedLayer> layers;
  layers.push_back({"fc", top_k_constraint(20)});
  Admm admm(admm_config(1.0), std::move(layers), *model, {.steps = 1000, .steps_per_epoch = 1000}, slots);
  admm.on_stage_begin(*model);
  minimise(admm, *model, a, 1000);
  EXPECT_LT(largest_difference(weight_of(*model), top_k_constraint(20)->project(a)), 1e-6);
}

TEST(Admm, SaysThatASmallRhoGetsNowhereAndNamesALargerOne) {
  const Tensor a = matrix_of({5, 4, 3, 2.9, 2.8, 1}, 12, 9, 2);  // ratio of the fourth value to the third: 0.97
  const auto model = one_layer(a);
  Admm admm = hook(admm_config(0.05), *model);
  admm.on_stage_begin(*model);
  const LogLines log;
  minimise(admm, *model, a, 60);
  EXPECT_GT(admm.history().back().relative, kAgreement);
  ASSERT_FALSE(log.lines().empty());
  EXPECT_NE(log.lines()[0].find("admm: the residual has stopped falling: layer 'fc' is "), std::string::npos) << log.lines()[0];
  EXPECT_NE(log.lines()[0].find("rho 0.05 is too small for the learning rate and the length of the stage: try 0.5"),
            std::string::npos)
      << log.lines()[0];
}

TEST(Admm, BalancingRecoversFromABadRho) {
  const Tensor a = matrix_of({5, 4, 3, 2.9, 2.8, 1}, 12, 9, 2);
  for (const double rho : {1e-3, 0.05, 1e3}) {
    SCOPED_TRACE(rho);
    const auto model = one_layer(a);
    AdmmConfig config = admm_config(rho);
    config.balance = BalanceConfig();
    Admm admm = hook(config, *model);
    admm.on_stage_begin(*model);
    minimise(admm, *model, a, 2000);
    EXPECT_LT(largest_difference(weight_of(*model), truncated(a, kRank)), 1e-4);
  }
}

// The gradient of the constraint is rho U and must not jump.
TEST(Admm, AChangeOfRhoKeepsRhoU) {
  const Tensor a = random_matrix(7, 5, 3);
  AdmmConfig rising = admm_config(0.5);
  rising.rho_end = 4;
  const auto constant_model = one_layer(a), rising_model = one_layer(a);
  Admm constant = hook(admm_config(0.5), *constant_model, 3), changing = hook(rising, *rising_model, 3);
  constant.on_stage_begin(*constant_model);
  changing.on_stage_begin(*rising_model);
  minimise(constant, *constant_model, a, 1);
  minimise(changing, *rising_model, a, 1);
  EXPECT_EQ(constant.rho(), 0.5);
  EXPECT_DOUBLE_EQ(changing.rho(), 0.5 * std::sqrt(8.0));  // halfway to 4 on a geometric scale
  const Tensor before = constant.state().tensors.at("u.fc"), after = changing.state().tensors.at("u.fc");
  EXPECT_GT(linalg::norm(before), 0.1);
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    EXPECT_NEAR(0.5 * before.data<double>()[i], changing.rho() * after.data<double>()[i], 1e-12);
  }
  minimise(changing, *rising_model, a, 1);
  EXPECT_DOUBLE_EQ(changing.rho(), 4);
  minimise(changing, *rising_model, a, 1);
  EXPECT_DOUBLE_EQ(changing.rho(), 4);
}

TEST(Admm, ItsFirstUpdateIsThatOfTheEquations) {
  const Tensor a = random_matrix(7, 5, 4), w = random_matrix(7, 5, 5);
  const auto model = one_layer(w);
  Admm admm = hook(admm_config(2), *model);
  admm.on_stage_begin(*model);
  const Tensor z = truncated(w, kRank);
  EXPECT_LT(largest_difference(admm.state().tensors.at("z.fc"), z), 1e-10);
  EXPECT_EQ(linalg::norm(admm.state().tensors.at("u.fc")), 0);
  minimise(admm, *model, a, 1);
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    EXPECT_NEAR(weight_of(*model).data<double>()[i], (a.data<double>()[i] + 2 * z.data<double>()[i]) / 3, 1e-10);
  }
  const Tensor next = truncated(weight_of(*model), kRank);
  EXPECT_LT(largest_difference(admm.state().tensors.at("z.fc"), next), 1e-10);
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    EXPECT_NEAR(admm.state().tensors.at("u.fc").data<double>()[i], weight_of(*model).data<double>()[i] - next.data<double>()[i],
                1e-10);
  }
  const Residuals& now = admm.history().back();
  EXPECT_NEAR(now.primal, linalg::distance(weight_of(*model), next), 1e-10);
  EXPECT_NEAR(now.dual, 2 * linalg::distance(next, z), 1e-10);
  EXPECT_NEAR(now.relative, now.primal / linalg::norm(weight_of(*model)), 1e-10);
  EXPECT_EQ(now.layer, "fc");
  EXPECT_EQ(now.rho, 2);

  const std::vector<Value> rows = admm.take_rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].at("admm").at("step").as_int(), 1);
  EXPECT_EQ(rows[0].at("admm").at("relative").as_double(), now.relative);
  EXPECT_TRUE(admm.take_rows().empty());
}

TEST(Admm, StopsItsUpdatesWhereTheCopiesRunAway) {
  const auto model = one_layer(random_matrix(7, 5, 6));
  Admm admm = hook(admm_config(1), *model);
  admm.on_stage_begin(*model);
  State far = admm.state();
  for (std::int64_t i = 0; i < 35; ++i) far.tensors.at("u.fc").data<double>()[i] = 100.0 + static_cast<double>(i);
  admm.load_state(far);
  const LogLines log;
  admm.between_steps(*model, 1);
  EXPECT_TRUE(admm.stopped());
  ASSERT_EQ(log.lines().size(), 1u);
  EXPECT_NE(log.lines()[0].find("admm: diverged at step 1 of the stage: layer 'fc'"), std::string::npos) << log.lines()[0];
  const State stopped = admm.state();
  admm.between_steps(*model, 2);
  EXPECT_EQ(admm.history().size(), 1u);
  EXPECT_EQ(largest_difference(admm.state().tensors.at("z.fc"), stopped.tensors.at("z.fc")), 0);
  EXPECT_NE(admm.summary().find("stopped"), std::string::npos);
}

TEST(Admm, GoesOnFromItsStateWithTheSameBytes) {
  const Tensor a = random_matrix(12, 9, 7);
  AdmmConfig config = admm_config(0.3);
  config.balance = BalanceConfig{.ratio = 1.5, .factor = 1.5};
  const auto straight = one_layer(a);
  Admm first = hook(config, *straight);
  first.on_stage_begin(*straight);
  minimise(first, *straight, a, 20);
  const auto resumed = one_layer(weight_of(*straight));
  Admm second = hook(config, *resumed);
  second.load_state(first.state());
  EXPECT_EQ(second.rho(), first.rho());
  minimise(first, *straight, a, 20);
  minimise(second, *resumed, a, 20);
  EXPECT_EQ(weight_of(*resumed).to_vector<double>(), weight_of(*straight).to_vector<double>());
  EXPECT_TRUE(first.state().meta == second.state().meta);

  State missing = first.state();
  missing.tensors.erase("z.fc");
  EXPECT_EQ(message_of<IoError>([&] { second.load_state(missing); }), "admm: the saved state has 1 tensors, the model needs 2");
}

TEST(Admm, AForkWithAnotherRhoGoesOnWithThat) {
  const Tensor a = random_matrix(12, 9, 8);
  const auto model = one_layer(a);
  Admm before = hook(admm_config(0.5), *model);
  before.on_stage_begin(*model);
  minimise(before, *model, a, 3);
  Admm after = hook(admm_config(2), *model);
  after.load_state(before.state());
  EXPECT_EQ(after.rho(), 2);
  EXPECT_NEAR(2 * linalg::norm(after.state().tensors.at("u.fc")), 0.5 * linalg::norm(before.state().tensors.at("u.fc")), 1e-12);
}

TEST(Admm, PullsTheGradientsOfConstrainedWeightsOnly) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto model = one_layer(random_matrix(67, 131, 9, dtype));
    Admm admm = hook(admm_config(0.25), *model);
    admm.on_stage_begin(*model);
    State known = admm.state();
    known.tensors.at("u.fc").copy_from(random_matrix(67, 131, 10, dtype));
    admm.load_state(known);
    Module& fc = model->child("fc");
    const Tensor gradient = random_matrix(67, 131, 11, dtype), bias = Tensor::full({67}, 3, dtype);
    fc.parameter("weight").set_grad(gradient.clone());
    fc.parameter("bias").set_grad(bias.clone());
    StepStateData data;
    admm.on_step_begin(*model, 0, data);
    StepState state;
    state.set(data);
    admm.after_backward(*model, state);
    const auto values = [](const Tensor& x) { return x.to(DType::f64).to_vector<double>(); };
    const auto g = values(gradient), w = values(weight_of(*model)), z = values(known.tensors.at("z.fc")),
               u = values(known.tensors.at("u.fc")), pulled = values(fc.parameter("weight").grad());
    for (std::size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(pulled[i], g[i] + 0.25 * (w[i] - z[i] + u[i]), 1e-5);
    EXPECT_EQ(values(fc.parameter("bias").grad()), values(bias));
    fc.parameter("weight").zero_grad();  // as a frozen weight, which has no gradient
    admm.after_backward(*model, state);
    EXPECT_FALSE(fc.parameter("weight").grad().defined());
  }
}

TEST(Admm, AForkWithAnotherRhoBeginsStoppedUpdatesAgain) {
  const auto model = one_layer(random_matrix(7, 5, 6));
  Admm stopped = hook(admm_config(1), *model);
  stopped.on_stage_begin(*model);
  State state = stopped.state();
  state.meta.set("stopped", true);
  Admm same = hook(admm_config(1), *model), forked = hook(admm_config(2), *model);
  same.load_state(state);
  forked.load_state(state);
  EXPECT_TRUE(same.stopped());
  EXPECT_FALSE(forked.stopped());
}

TEST(Admm, SaysThatAStageEndsFarFromAgreement) {
  const Tensor a = random_matrix(12, 9, 1);
  const auto model = one_layer(a);
  Admm admm = hook(admm_config(1), *model);
  admm.on_stage_begin(*model);
  minimise(admm, *model, a, 1);
  const LogLines log;
  admm.on_stage_end(*model);
  ASSERT_EQ(log.lines().size(), 1u);
  EXPECT_TRUE(log.lines()[0].starts_with("admm: the stage ends with layer 'fc' ")) << log.lines()[0];
  minimise(admm, *model, a, 500);
  admm.on_stage_end(*model);
  EXPECT_EQ(log.lines().size(), 1u);
}

TEST(Admm, UpdatesEverySoManyStepsOrEpochs) {
  const auto model = one_layer(random_matrix(4, 4, 12));
  const auto interval = [&](Duration update) {
    AdmmConfig config = admm_config(1);
    config.update = update;
    StepSlots slots;
    return Admm(config, rank_of_fc(2), *model, {.steps = 90, .steps_per_epoch = 30}, slots).interval();
  };
  EXPECT_EQ(interval(Duration::epochs(1)), 30);
  EXPECT_EQ(interval(Duration::steps(7)), 7);
  EXPECT_EQ(interval(Duration::percent(10)), 9);
  EXPECT_EQ(interval(Duration::epochs(0.001)), 1);
}

}  // namespace
}  // namespace tessera
