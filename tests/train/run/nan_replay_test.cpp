#include "train/run/nan_replay.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "train/config/yaml.h"

namespace tessera {
namespace {

Experiment experiment(const std::string& lr) {
  return parse_experiment(parse_yaml(R"(
version: 1
name: small
seed: 3
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 60, test_count: 20, batch: 16, val: 0}
model: {name: layers, layers: [{conv2d: {out: 4, kernel: 3, stride: 2, name: conv1}}, relu,
                               {conv2d: {out: 4, kernel: 3, name: conv2}},
                               global_avg_pool, {linear: {out: 10, name: fc}}]}
optimizer: {name: sgd, lr: 0.05}
stages:
  - {name: calm, train: 2s}
  - {name: wild, factorise: {keep: always, layers: conv2, ranks: {out: 2, in: 2}}, train: 9s, optimizer: {lr: )" +
                                         lr + R"(}}
)",
                                     "test.yaml"));
}

RunState fresh(const Experiment& experiment) {
  RunInputs inputs = load_inputs(real_vfs(), experiment.config);
  RunState state(experiment.config, std::move(inputs.data));
  state.start(std::move(inputs.initial));
  return state;
}

// Reaches the end of the first stage as a run does, but without files.
void finish_first_stage(RunState& state) {
  state.prepare_stage();
  state.begin_training();
  for (int i = 0; i < 2; ++i) state.step();
  state.end_stage();
}

TEST(NanReplay, NamesStageStepAndOpAfterAFactorisation) {
  const Experiment wild = experiment("1.0e+30");
  RunState state = fresh(wild);
  finish_first_stage(state);
  const std::string told = name_first_bad_op(state, 12, "found", {}, "it is so");
  // Step 3 is the factorisation. The first step of `wild` makes weights so large that the second step's products overflow.
  EXPECT_TRUE(
      told.starts_with("training: stage wild, step 5 (lr 1e+30): conv2d (conv2) forward made the first Inf: output f32 [16, "))
      << told;
}

TEST(NanReplay, SaysWhenNothingComesBack) {
  const Experiment calm = experiment("0.01");
  RunState state = fresh(calm);
  EXPECT_EQ(name_first_bad_op(state, 2, "found", {}, "it is so"),
            "found; the replay of steps 1 to 2 with every op checked made no NaN or Inf: it is so");
  EXPECT_EQ(state.position().global_step, 2);
}

TEST(NanReplay, StopsWhenAsked) {
  const Experiment calm = experiment("0.01");
  RunState state = fresh(calm);
  StopRequest stop;
  stop.set_time_limit(std::chrono::steady_clock::now());
  EXPECT_EQ(name_first_bad_op(state, 2, "found", stop, "it is so"),
            "found; the replay that names the first bad op was stopped before step 1");
}

}  // namespace
}  // namespace tessera
