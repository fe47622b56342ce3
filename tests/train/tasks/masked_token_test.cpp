#include "train/tasks/masked_token.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "tests/train/tasks/token_batches.h"
#include "train/data/text/masking.h"

namespace tessera {
namespace {

constexpr std::int64_t kNo = Masking::kNoTarget;

Batch batch_of(std::vector<std::int64_t> targets, std::int64_t samples) {
  const std::int64_t length = static_cast<std::int64_t>(targets.size()) / samples;
  return Batch{{"tokens", Tensor::zeros({samples, length}, DType::i64)}, {"targets", Tensor::from(targets, {samples, length})}};
}

std::int64_t greatest(const Tensor& scores, std::int64_t row) {
  const float* x = scores.data<float>() + row * scores.dim(2);
  return std::max_element(x, x + scores.dim(2)) - x;
}

TEST(MaskedTokenTask, HasTargetsThatVaryFromSampleToSample) { EXPECT_TRUE(MaskedToken().targets_vary()); }

TEST(MaskedTokenTask, CountsHiddenTokensAlone) {
  const MaskedToken task;
  const Tensor first = random_scores(2, 3, 13, 1), second = random_scores(1, 3, 13, 2);
  const std::vector<std::int64_t> targets{greatest(first, 0), kNo, kNo, kNo, (greatest(first, 4) + 1) % 13, greatest(first, 5)};
  const auto score = task.score();
  EXPECT_EQ(score->values(), (std::vector<double>{0, 0}));
  judge(task, *score, first, batch_of(targets, 2));
  judge(task, *score, second, batch_of({kNo, greatest(second, 1), kNo}, 1));
  judge(task, *score, second, batch_of({kNo, kNo, kNo}, 1));
  const double nats = nats_of(first, 0, targets[0]) + nats_of(first, 4, targets[4]) + nats_of(first, 5, targets[5]) +
                      nats_of(second, 1, greatest(second, 1));
  EXPECT_NEAR(score->values()[0], nats / 4, 1e-6);
  EXPECT_EQ(score->values()[1], 0.75);
  const auto added = task.score();
  added->add_sums(score->sums());
  added->add_sums(task.score()->sums());
  EXPECT_EQ(added->values(), score->values());
  EXPECT_EQ(added->sums(), score->sums());
}

TEST(MaskedTokenTask, ANaNIsNoAnswer) {
  const MaskedToken task;
  Tensor scores = random_scores(1, 2, 5, 1);
  const std::vector<std::int64_t> targets{greatest(scores, 0), greatest(scores, 1)};
  scores.data<float>()[(targets[0] + 1) % 5] = std::numeric_limits<float>::quiet_NaN();
  const auto score = task.score();
  judge(task, *score, scores, batch_of(targets, 1));
  EXPECT_EQ(score->values()[1], 0.5);
}

TEST(MaskedTokenTask, LossAsksNothingWhereNothingIsHidden) {
  const MaskedToken task;
  const Tensor scores = random_scores(1, 3, 7, 4);
  EXPECT_NEAR(task.loss(Var(scores), batch_of({kNo, 6, kNo}, 1), {}).value().item(), nats_of(scores, 1, 6), 1e-6);
  EXPECT_EQ(task.loss_weight(batch_of({kNo, 6, kNo}, 1)), 1);
  EXPECT_EQ(task.loss(Var(scores), batch_of({kNo, kNo, kNo}, 1), {}).value().item(), 0);
}

TEST(MaskedTokenTask, DetailsTellHowManyWereHidden) {
  const MaskedToken task;
  const Tensor scores = random_scores(2, 2, 5, 1);
  const auto details = task.details({}, {});
  judge(task, *details, scores, batch_of({greatest(scores, 0), kNo, kNo, (greatest(scores, 3) + 1) % 5}, 2));
  EXPECT_EQ(details->text(), "2 masked of 4 tokens, 1 told rightly\n");
  EXPECT_EQ(details->summary(), "accuracy 50.00 %");
  EXPECT_EQ(details->keys().at("masked").as_int(), 2);
  EXPECT_EQ(details->keys().at("masked_accuracy").as_double(), 0.5);
  EXPECT_EQ(message_of<ConfigError>([&] { task.details({}, {.predictions = true, .probabilities = true}); }),
            "masked-token: a sample has many answers; --probabilities is for one");
}

}  // namespace
}  // namespace tessera
