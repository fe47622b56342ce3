// The accuracy of moving averages: it must be good early, and with batch-norm statistics measured for the averages.
#include <gtest/gtest.h>

#include "core/support/text.h"
#include "layers/batch_norm.h"
#include "train/config/yaml.h"
#include "train/run/compute_dtype.h"
#include "train/run/evaluate.h"
#include "train/run/run_state.h"

namespace tessera {
namespace {

constexpr std::int64_t kSteps = 90;

ExperimentConfig config_with(const std::string& ema) {
  const std::string text = str(R"(version: 1
name: x
threads: {compute: 1, loader: 0}
deterministic: true
data: {name: glyphs, count: 1000, test_count: 32, batch: 32, val: 0.2}
model:
  name: layers
  layers:
    - {conv2d: {out: 8, kernel: 3, stride: 2, name: conv1}}
    - batch_norm
    - relu
    - {conv2d: {out: 8, kernel: 3, stride: 2, name: conv2}}
    - batch_norm
    - relu
    - flatten
    - {linear: {out: 10, name: fc}}
optimizer: {name: sgd, lr: 0.1, momentum: 0.9}
stages: [{name: only, train: 90s}]
ema: )",
                               ema, "\n");
  ExperimentConfig config = parse_experiment(parse_yaml(text, "x.yaml")).config;
  settle_for_run(config);
  return config;
}

class AveragedRun {
 public:
  explicit AveragedRun(const std::string& ema)
      : config_(config_with(ema)), state_(config_, load_data(config_.data, static_cast<std::uint64_t>(config_.seed))) {}

  void start() {
    state_.start(initial_model(real_vfs(), config_, state_.data()));
    state_.prepare_stage();
    state_.begin_training();
  }
  // Continues from the state of `other`, through a checkpoint.
  void go_on_from(const AveragedRun& other) {
    Checkpoint checkpoint;
    checkpoint.folder = "x";
    checkpoint.manifest = other.state_.manifest();
    for (const auto& [name, part] : other.state_.parts()) {
      for (const auto& [path, tensor] : part.tensors) checkpoint.parts[name].tensors.emplace(path, tensor.clone());
      checkpoint.parts[name].meta = part.meta;
    }
    state_.load(checkpoint);
    state_.begin_training();
  }
  void train_to(std::int64_t step) {
    while (state_.position().stage_step < step) state_.step();
  }
  double accuracy() { return evaluate_split(state_.model(), state_.data().val, config_).deciding(); }
  double averages_accuracy() {
    double result = 0;
    state_.trainer()->with_evaluation_weights([&] { result = accuracy(); });
    return result;
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (const auto& [name, part] : state_.parts()) {
      for (const auto& [path, tensor] : part.tensors) {
        const std::vector<double> some = tensor.to(DType::f64).to_vector<double>();
        all.insert(all.end(), some.begin(), some.end());
      }
    }
    return all;
  }
  std::vector<float> statistics() const {
    std::vector<float> all;
    for (const NamedBuffer& named : named_buffers(state_.model())) {
      const std::vector<float> some = named.buffer->value.to_vector<float>();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  RunState& state() { return state_; }

 private:
  ExperimentConfig config_;
  RunState state_;
};

TEST(Averages, AreAsGoodAsTheWeightsSoon) {
  AveragedRun run("{decay: 0.999}");
  run.start();
  run.train_to(kSteps);
  const double own = run.accuracy();
  EXPECT_GT(own, 0.6);
  EXPECT_GT(run.averages_accuracy(), own - 0.1);

  AveragedRun plain("{decay: 0.999, warmup: false, statistics: 0}");
  plain.start();
  plain.train_to(kSteps);
  EXPECT_EQ(plain.accuracy(), own);
  EXPECT_LT(plain.averages_accuracy(), own - 0.3);
}

TEST(Averages, TakeStatisticsOfTheirOwnAndLeaveTheWeightsTheirs) {
  AveragedRun run("{decay: 0.99, statistics: 3}");
  run.start();
  run.train_to(20);
  const std::vector<float> own = run.statistics();
  std::vector<float> averaged, again;
  run.state().trainer()->with_evaluation_weights([&] { averaged = run.statistics(); });
  EXPECT_EQ(run.statistics(), own);
  EXPECT_NE(averaged, own);
  run.state().trainer()->with_evaluation_weights([&] { again = run.statistics(); });
  EXPECT_EQ(again, averaged) << "the same batches";
  AveragedRun plain("{decay: 0.99, statistics: 0}");
  plain.start();
  plain.train_to(20);
  plain.state().trainer()->with_evaluation_weights(
      [&] { EXPECT_NE(plain.statistics(), averaged) << "averages of the weights' statistics are others"; });
  run.state().end_stage();
  EXPECT_EQ(run.statistics(), averaged) << "the averages become the weights, with their statistics";
}

TEST(Averages, GoOnFromACheckpointWithTheSameBytes) {
  AveragedRun straight("{decay: 0.99}");
  straight.start();
  straight.train_to(25);
  straight.averages_accuracy();  // as at the end of an epoch
  AveragedRun resumed("{decay: 0.99}");
  resumed.go_on_from(straight);
  for (AveragedRun* const run : {&straight, &resumed}) {
    run->train_to(40);
    run->averages_accuracy();
    run->train_to(50);
  }
  EXPECT_EQ(resumed.values(), straight.values());
}

}  // namespace
}  // namespace tessera
