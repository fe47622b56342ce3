// Compares the Taylor scores of a pruning stage with gradients computed in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "tests/train/run/small_steps.h"
#include "train/run/stage_hooks.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;
constexpr std::int64_t kSamples = 6, kIn = 5, kHidden = 7, kOut = 3;

std::vector<double> doubles(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_vector<float>();
  return {values.begin(), values.end()};
}

// A batch that differs for each i.
Batch batch_number(std::int64_t i) {
  Batch batch = make_batch(kSamples, kIn);
  fill_normal(batch.at("image"), RngStream(17, "test", "batch"), 0, 1, static_cast<std::uint64_t>(i));
  return batch;
}

// d loss / d W1, where logits = W2 (W1 x + b1) + b2 and the loss is their mean cross entropy.
std::vector<double> gradient_of_first_weight(Module& model, const Batch& batch) {
  const auto of = [&](const char* layer, const char* name) { return doubles(model.child(layer).parameter(name).value()); };
  const std::vector<double> w1 = of("fc1", "weight"), b1 = of("fc1", "bias"), w2 = of("fc2", "weight"), b2 = of("fc2", "bias");
  const std::vector<double> x = doubles(batch.at("image"));
  std::vector<double> gradient(kHidden * kIn, 0);
  for (std::size_t s = 0; s < kSamples; ++s) {
    std::vector<double> hidden(b1), logits(b2);
    for (std::size_t h = 0; h < kHidden; ++h) {
      for (std::size_t i = 0; i < kIn; ++i) hidden[h] += w1[h * kIn + i] * x[s * kIn + i];
      for (std::size_t o = 0; o < kOut; ++o) logits[o] += w2[o * kHidden + h] * hidden[h];
    }
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    const auto label = static_cast<std::size_t>(batch.at("label").data<std::int64_t>()[s]);
    for (std::size_t o = 0; o < kOut; ++o) {
      const double slope = (std::exp(logits[o]) / sum - (o == label ? 1 : 0)) / kSamples;
      for (std::size_t h = 0; h < kHidden; ++h) {
        for (std::size_t i = 0; i < kIn; ++i) gradient[h * kIn + i] += slope * w2[o * kHidden + h] * x[s * kIn + i];
      }
    }
  }
  return gradient;
}

// The mask of the `count` best scores among fc1's weights: the sum of (g w)^2 over `batches` batches from `first`.
std::vector<std::uint8_t> best(Module& model, std::int64_t first, std::int64_t batches, std::size_t count) {
  const std::vector<double> weight = doubles(model.child("fc1").parameter("weight").value());
  std::vector<double> scores(weight.size(), 0);
  for (std::int64_t b = first; b < first + batches; ++b) {
    const std::vector<double> gradient = gradient_of_first_weight(model, batch_number(b));
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += std::pow(gradient[i] * weight[i], 2);
  }
  std::vector<double> sorted = scores;
  std::ranges::sort(sorted, std::greater());
  EXPECT_GT(sorted[count - 1], 1.001 * sorted[count]) << "rounding does not decide";
  std::vector<std::uint8_t> mask;
  for (const double score : scores) mask.push_back(score >= sorted[count - 1] ? 1 : 0);
  return mask;
}

StageConfig pruned_by_taylor(std::int64_t batches, std::optional<std::int64_t> micro_batch) {
  StageConfig stage;
  stage.training = plain_sgd(0.5);
  stage.training.micro_batch = micro_batch;
  stage.prune = PruneConfig();
  stage.prune->layers = Value("fc1");
  stage.prune->score = "taylor";
  stage.prune->score_batches = batches;
  stage.prune->sparsity = {.target = 0.6, .schedule = "one_shot"};
  stage.prune->sparsity.begin = Duration::steps(2);
  return stage;
}

// Two steps come first, so that the gradients are those of trained weights.
TEST(TaylorScores, OfAStageKeepWhatTheFormulaKeeps) {
  std::vector<std::vector<std::uint8_t>> masks;
  for (const std::int64_t batches : {1, 3, 8}) {
    for (const std::optional<std::int64_t> micro_batch : {std::optional<std::int64_t>{}, {2}}) {
      const StageConfig stage = pruned_by_taylor(batches, micro_batch);
      std::vector<std::pair<std::int64_t, std::int64_t>> asked;
      const ReadBatches read = [&](std::int64_t first, std::int64_t count, const std::function<void(const Batch&)>& each) {
        asked.emplace_back(first, count);
        for (std::int64_t i = first; i < first + count; ++i) each(batch_number(i));
      };
      const auto model = make_model();
      StageTrainer trainer(*model, stage.training, kTask, 1, 4, 4, DType::f32,
                           stage_hooks(stage, {.results = {}, .batches = read}));
      trainer.begin_stage();
      for (std::int64_t step = 0; step < 2; ++step) {
        EXPECT_TRUE(asked.empty());
        trainer.step(make_batch(kSamples), step, step);
        if (step == 0) trainer.between_steps(1);
      }
      const std::vector<std::uint8_t> want = best(*model, 2 * batches, batches, 14);
      const std::vector<float> before = weights_of(*model);
      trainer.between_steps(2);
      using Asked = std::vector<std::pair<std::int64_t, std::int64_t>>;
      EXPECT_EQ(asked, (Asked{{2 * batches, batches}})) << "others at every step";
      const Parameter& weight = model->child("fc1").parameter("weight");
      ASSERT_TRUE(weight.mask().defined());
      EXPECT_EQ(weight.mask().to_vector<std::uint8_t>(), want) << batches << " batches";
      for (const NamedParameter& named : named_parameters(*model)) EXPECT_FALSE(named.parameter->grad().defined()) << named.path;
      const std::vector<float> after = weights_of(*model);
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_TRUE(after[i] == before[i] || (i < want.size() && want[i] == 0 && after[i] == 0)) << "weight " << i;
      }
      if (!micro_batch) masks.push_back(want);
    }
  }
  EXPECT_NE(masks[0], masks[1]);
  EXPECT_NE(masks[1], masks[2]);
}

}  // namespace
}  // namespace tessera
