#include "core/ops/attention.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autograd/backward.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/isa.h"
#include "core/cpu/parallel.h"
#include "core/device/memory_history.h"
#include "core/device/step_state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/reduce.h"
#include "core/rng.h"
#include "tests/core/ops/attention_answers.h"
#include "tests/support/message_of.h"
#include "tests/support/op_checks.h"
#include "tests/support/relative_error.h"

namespace tessera {
namespace {

TEST(Attention, DropoutKeepsWhatItsRandomWordsSay) {
  StepState state;
  state.set({.step = 3});
  AttentionOptions options{.causal = true, .dropout = 0.4, .stream = RngStream(7, "a", "mask"), .step_state = state.tensor()};
  const std::int64_t s = 71, heads = 2, width = 9;
  const Shape shape{2, s, heads, width};
  const testing::AttentionAnswer narrow = testing::attention_answer(shape, shape, options),
                                 wide = testing::attention_answer(shape, shape, options, DType::f64);
  // The path in double is the definition. It draws one random number at a time.
  expect_close(narrow, wide, 1e-5);
  options.dropout = 0;
  EXPECT_GT(relative_error(testing::attention_answer(shape, shape, options).y, wide.y), 0.1);
  state.set({.step = 4});
  options.dropout = 0.4;
  EXPECT_GT(relative_error(testing::attention_answer(shape, shape, options).y, wide.y), 0.1);
}

// Heads share keys, with a window and hidden keys. Random words are counted for each query row and each key, seen or not.
TEST(Attention, DropoutDrawsForEveryPairWhetherItIsSeenOrNot) {
  StepState state;
  state.set({.step = 3});
  const Tensor mask = Tensor::zeros({2, 150}, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); ++i) mask.data<std::uint8_t>()[i] = i % 5 != 2;
  const Shape q{2, 130, 6, 20}, kv{2, 150, 2, 20};
  for (const auto& [causal, window] : {std::pair(true, 0), {false, 31}, {true, 31}}) {
    SCOPED_TRACE(str("causal ", causal, ", window ", window));
    const AttentionOptions options{.causal = causal,
                                   .window = window,
                                   .key_mask = mask,
                                   .dropout = 0.4,
                                   .stream = RngStream(7, "a", "mask"),
                                   .step_state = state.tensor()};
    expect_close(testing::attention_answer(q, kv, options), testing::attention_answer(q, kv, options, DType::f64), 1e-5);
  }
}

// Processors that multiply bf16 take neighbours in pairs: odd numbers of keys and columns, whole and partial tiles.
TEST(Attention, InBf16TheErrorIsThatOfRounding) {
  StepState state;
  state.set({.step = 3});
  AttentionOptions dropping{.dropout = 0.3, .stream = RngStream(7, "a", "mask"), .step_state = state.tensor()};
  struct Case {
    Shape q, kv;
    AttentionOptions options;
  };
  for (const auto& [q, kv, options] : {Case{{2, 131, 4, 9}, {2, 131, 2, 9}, {.causal = true}},
                                       {{1, 70, 2, 64}, {1, 197, 2, 64}, {}},
                                       {{1, 199, 2, 33}, {1, 199, 1, 33}, {.causal = true, .window = 21}},
                                       {{1, 90, 2, 80}, {1, 90, 1, 80}, {.causal = true}},
                                       {{1, 70, 1, 128}, {1, 101, 1, 128}, {}},
                                       {{2, 77, 2, 20}, {2, 95, 2, 20}, dropping}}) {
    SCOPED_TRACE(q);
    testing::expect_close(testing::attention_answer(q, kv, options, DType::bf16),
                          testing::attention_answer(q, kv, options, DType::f64), 3 * testing::kBf16Rounding);
  }
}

TEST(Attention, MultipliesInBf16WhereTheProcessorDoes) {
  const bool wide = cpu::isa() == cpu::Isa::avx512 && __builtin_cpu_supports("avx512bf16") != 0;
  EXPECT_EQ(&cpu::attention::kernels_of_bf16() != &cpu::attention::kernels(), wide);
}

TEST(Attention, DropsTheStatedShareOfProbabilities) {
  StepState state;
  const std::int64_t s = 200;
  // Scores are 0 and values are 1, so y is the share of kept pairs times the dropout factor.
  const AttentionOptions options{.dropout = 0.25, .stream = RngStream(1, "a", "mask"), .step_state = state.tensor()};
  const Var zeros(Tensor::zeros({1, s, 1, 4})), ones(Tensor::full({1, s, 1, 4}, 1.0));
  const Tensor y = attention(zeros, zeros, ones, options).value();
  double total = 0;
  for (const float value : y.to_vector<float>()) total += value / (4.0 * static_cast<double>(s));
  EXPECT_NEAR(total, 1, 5 * std::sqrt(0.25 / 0.75 / static_cast<double>(s * s)));
}

TEST(Attention, AnyNumberOfThreadsGivesTheSameBytes) {
  // Six heads of keys; a single head, which several tasks share; few queries.
  for (const auto& [q, kv] : {std::pair(Shape{2, 150, 6, 20}, Shape{2, 150, 3, 20}),
                              {Shape{1, 331, 2, 20}, Shape{1, 331, 1, 20}},
                              {Shape{1, 2, 12, 64}, Shape{1, 700, 4, 64}}}) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    const testing::AttentionAnswer one = testing::attention_answer(q, kv, {.causal = true});
    omp_set_num_threads(5);
    const testing::AttentionAnswer five = testing::attention_answer(q, kv, {.causal = true});
    omp_set_num_threads(before);
    EXPECT_TRUE(testing::same_bytes(one.y, five.y));
    EXPECT_TRUE(testing::same_bytes(one.grad_q, five.grad_q));
    EXPECT_TRUE(testing::same_bytes(one.grad_k, five.grad_k));
    EXPECT_TRUE(testing::same_bytes(one.grad_v, five.grad_v));
  }
}

// As in text generation: one position after another gives the same as all positions at once.
TEST(Attention, OneQueryAfterAnotherIsAllAtOnce) {
  const std::int64_t s = 90;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor q = testing::random_values({2, s, 6, 32}, 1, dtype), k = testing::random_values({2, s, 2, 32}, 2, dtype),
                 v = testing::random_values({2, s, 2, 32}, 3, dtype);
    const Tensor all = attention(Var(q), Var(k), Var(v), {.causal = true, .window = 40}).value();
    for (std::int64_t i = 0; i < s; ++i) {
      const Tensor y = attention(Var(q.slice(1, i, i + 1)), Var(k.slice(1, 0, i + 1)), Var(v.slice(1, 0, i + 1)),
                                 {.causal = true, .window = 40})
                           .value();
      EXPECT_LT(relative_error(y, all.slice(1, i, i + 1)), dtype == DType::f32 ? 1e-5 : 2 * testing::kBf16Rounding) << i;
    }
  }
}

TEST(Attention, LargeScoresNeitherOverflowNorVanish) {
  const Shape shape{1, 100, 1, 8};
  const Var q(Tensor::full(shape, 40.0), true), k(testing::random_values(shape, 2), true),
      v(testing::random_values(shape, 3), true);
  const Var y = attention(q, k, v, {.scale = 5.0});
  backward(sum(y));
  const Var wide =
      attention(Var(q.value().to(DType::f64)), Var(k.value().to(DType::f64)), Var(v.value().to(DType::f64)), {.scale = 5.0});
  EXPECT_LT(relative_error(y.value(), wide.value()), 1e-3);  // scores of 1,600 have errors of about 1e-4
  for (const float g : q.grad().to_vector<float>()) EXPECT_TRUE(std::isfinite(g));
}

TEST(Attention, ANaNStaysInTheRowsThatSeeIt) {
  const Shape shape{1, 60, 1, 4};
  const Tensor k = testing::random_values(shape, 2);
  k.data<float>()[50 * 4] = NAN;
  const Tensor y =
      attention(Var(testing::random_values(shape, 1)), Var(k), Var(testing::random_values(shape, 3)), {.causal = true}).value();
  for (std::int64_t i = 0; i < 60; ++i) EXPECT_EQ(std::isnan(y.data<float>()[i * 4]), i >= 50) << i;
}

// Keys and values of unseen tiles may hold anything, in the forward pass and in the gradient of q.
TEST(Attention, TilesOfKeysThatNoQueryOfATileSeesAreNotRead) {
  struct Case {
    std::string name;
    AttentionOptions options;
    std::int64_t first, end;  // keys with NaN values
    std::int64_t from, to;  // queries that must not read those keys
  };
  const std::int64_t s = 5 * cpu::attention::kKeys, queries = cpu::attention::kQueries, keys = cpu::attention::kKeys;
  const Tensor mask = Tensor::zeros({1, s}, DType::u8);
  for (std::int64_t i = 0; i < s; ++i) mask.data<std::uint8_t>()[i] = i < keys || i >= 2 * keys;
  const Shape shape{1, s, 1, 8};
  for (const Case& c :
       {Case{"mask", {.key_mask = mask}, keys, 2 * keys, 0, s}, Case{"causal", {.causal = true}, 3 * keys, s, 0, 2 * queries},
        Case{"window", {.causal = true, .window = 10}, 0, 2 * keys, 3 * queries, s},
        Case{"both sides", {.window = 10}, 4 * keys, s, 0, 2 * queries}}) {
    SCOPED_TRACE(c.name);
    const Tensor values = testing::random_values(shape, 3);
    const AttentionOptions& options = c.options;
    const Var q(testing::random_values(shape, 1), true);
    values.slice(1, c.first, c.end).fill(NAN);
    const Var y = attention(q, Var(testing::random_values(shape, 2)), Var(values), options);
    const auto met = [&](const Tensor& of) {
      std::int64_t count = 0;
      for (const float value : of.slice(1, c.from, c.to).contiguous().to_vector<float>()) count += std::isnan(value) ? 1 : 0;
      return count;
    };
    EXPECT_EQ(met(y.value()), 0);
    backward(y, testing::random_values(shape, 4));
    EXPECT_EQ(met(q.grad()), 0);
  }
}

TEST(Attention, TheMemoryOfALongSequenceIsLinearInIt) {
  StepState state;
  const cpu::OneThread alone;  // with several threads, one may end before another begins
  const auto most = [&](std::int64_t s, DType dtype, double dropout) {
    const Shape shape{1, s, 1, 32};
    const Var q(testing::random_values(shape, 1, dtype), true), k(testing::random_values(shape, 2, dtype), true),
        v(testing::random_values(shape, 3, dtype), true);
    const AttentionOptions options{.causal = true,
                                   .key_mask = Tensor::full({1, s}, 1, DType::u8),
                                   .dropout = dropout,
                                   .stream = RngStream(7, "a", "mask"),
                                   .step_state = state.tensor()};
    const MemoryHistory history(Device::cpu());
    backward(sum(attention(q, k, v, options)));
    return std::ranges::max(history.in_use()) - history.in_use().front();
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const double dropout : {0.0, 0.3}) {
      SCOPED_TRACE(str(dtype, ", dropout ", dropout));
      const std::size_t half = most(2048, dtype, dropout), whole = most(4096, dtype, dropout);
      EXPECT_LT(whole, std::size_t{4096} * 4096 * sizeof(float) / 4) << "of a matrix of scores";
      EXPECT_LT(static_cast<double>(whole), 2.2 * static_cast<double>(half));
    }
  }
}

TEST(Attention, QueriesThatSeeAKeyLieWithinTheirBounds) {
  for (const std::int64_t queries : {1, 40, 90}) {
    for (const bool causal : {false, true}) {
      for (const auto& [window, block] :
           std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {1, 1}, {7, 1}, {1, 16}, {20, 16}}) {
        const AttentionForm form{1, queries, 53, 1, 1, 1, causal, window, 1.0, block};
        if (block > 1 && queries > form.keys) continue;  // patterns have at most as many queries as keys
        for (std::int64_t key = 0; key < form.keys; ++key) {
          if (causal) {
            EXPECT_GE(form.position(form.first_query(key)), key);
          }
          if (window > 0) {
            EXPECT_LE(form.end_query(key) - form.first_query(key), 2 * (window + 2 * block));
          }
          for (std::int64_t query = 0; query < queries; ++query) {
            if (key < form.first_key(query) || key >= form.end_key(query)) continue;
            EXPECT_GE(query, form.first_query(key));
            EXPECT_LT(query, form.end_query(key));
          }
        }
      }
    }
  }
}

TEST(Attention, AWindowLongerThanTheSequencesHidesNothing) {
  for (const std::int64_t queries : {5, 71}) {
    const Shape q{1, queries, 2, 9}, kv{1, 37, 1, 9};
    for (const bool causal : {false, true}) {
      const testing::AttentionAnswer all = testing::attention_answer(q, kv, {.causal = causal});
      for (const std::int64_t window : {std::int64_t{71}, std::numeric_limits<std::int64_t>::max()}) {
        testing::expect_close(testing::attention_answer(q, kv, {.causal = causal, .window = window}), all, 1e-6);
      }
    }
  }
}

TEST(Attention, OperandsThatDoNotFitAreNamed) {
  const auto message = [](const Shape& q, const Shape& k, const Shape& v, const AttentionOptions& options = {}) {
    return message_of<Error>([&] { attention(Var(Tensor::zeros(q)), Var(Tensor::zeros(k)), Var(Tensor::zeros(v)), options); });
  };
  const Shape q{2, 5, 4, 8}, kv{2, 6, 2, 8};
  EXPECT_EQ(message(q, {2, 6, 3, 8}, {2, 6, 3, 8}),
            "attention: q is [2, 5, 4, 8], k is [2, 6, 3, 8], v is [2, 6, 3, 8]; needs [batch, queries, heads, width], twice "
            "[batch, keys, kv_heads, width], and kv_heads that divide heads");
  EXPECT_NE(message(q, kv, {2, 5, 2, 8}), "");
  EXPECT_EQ(message(q, kv, kv, {.key_mask = Tensor::zeros({2, 5}, DType::u8)}),
            "attention: key_mask is [2, 5], k has 6 keys in 2 sequences; needs [batch, keys]");
  EXPECT_EQ(message(q, kv, kv, {.dropout = 1}), "attention: dropout is 1; needs 0 <= dropout < 1");
  EXPECT_EQ(message(q, kv, kv, {.dropout = 0.5}), "attention: dropout is 0.5; needs the state of a step to draw from");
  EXPECT_EQ(message(q, kv, kv, {.window = -1}), "attention: window is -1; needs 0 or more");
}

}  // namespace
}  // namespace tessera
