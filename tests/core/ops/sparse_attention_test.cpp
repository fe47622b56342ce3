#include "core/ops/sparse_attention.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>

#include "core/autograd/backward.h"
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

AttentionPatternPtr pattern(std::int64_t positions, std::int64_t heads, std::int64_t band, double density, std::int64_t block = 1,
                            bool causal = true) {
  return std::make_shared<const AttentionPattern>(AttentionPatternOptions{.positions = positions,
                                                                          .heads = heads,
                                                                          .band = band,
                                                                          .density = density,
                                                                          .block = block,
                                                                          .causal = causal,
                                                                          .stream = RngStream(2, "test", "pattern")});
}

TEST(SparseAttention, AFullPatternGivesDenseAttention) {
  for (const std::int64_t width : {32, 64, 128}) {
    for (const bool causal : {true, false}) {
      for (const std::int64_t block : {1, 16, 32}) {
        SCOPED_TRACE(str("width ", width, ", causal ", causal, ", blocks of ", block));
        const Shape q{1, 131, 4, width}, kv{1, 131, 2, width};
        const testing::AttentionAnswer dense = testing::attention_answer(q, kv, {.causal = causal});
        expect_close(testing::attention_answer(q, kv, {.pattern = pattern(131, 4, 20, 1, block, causal)}), dense, 1e-5);
        expect_close(testing::attention_answer(q, kv, {.pattern = pattern(131, 4, 131, 0, block, causal)}), dense, 1e-5);
      }
    }
  }
}

TEST(SparseAttention, RandomPatternsGiveWhatDoubleGives) {
  for (const std::int64_t width : {1, 32, 50, 64, 128, 200}) {
    for (const std::int64_t block : {1, 16, 32}) {
      SCOPED_TRACE(str("width ", width, ", blocks of ", block));
      const Shape q{1, 211, 2, width};
      const AttentionOptions options{.pattern = pattern(211, 2, 13, 0.2, block)};
      const testing::AttentionAnswer wide = testing::attention_answer(q, q, options, DType::f64);
      expect_close(testing::attention_answer(q, q, options), wide, 1e-5);
      EXPECT_GT(relative_error(testing::attention_answer(q, q, {.causal = true}).y, wide.y), 0.01);
    }
  }
}

TEST(SparseAttention, DropoutKeepsWhatItsRandomWordsSay) {
  StepState state;
  state.set({.step = 3});
  for (const std::int64_t block : {1, 16}) {
    AttentionOptions options{.dropout = 0.4,
                             .stream = RngStream(7, "a", "mask"),
                             .step_state = state.tensor(),
                             .pattern = pattern(101, 2, 5, 0.3, block, false)};
    const Shape shape{2, 101, 2, 9};
    const testing::AttentionAnswer wide = testing::attention_answer(shape, shape, options, DType::f64);
    expect_close(testing::attention_answer(shape, shape, options), wide, 1e-5);
    options.dropout = 0;
    EXPECT_GT(relative_error(testing::attention_answer(shape, shape, options).y, wide.y), 0.1);
  }
}

TEST(SparseAttention, AnyNumberOfThreadsGivesTheSameBytes) {
  const Shape q{2, 150, 6, 20}, kv{2, 150, 3, 20};
  const int before = omp_get_max_threads();
  for (const std::int64_t block : {1, 16}) {
    const AttentionOptions options{.pattern = pattern(150, 6, 4, 0.3, block)};
    omp_set_num_threads(1);
    const testing::AttentionAnswer one = testing::attention_answer(q, kv, options);
    omp_set_num_threads(5);
    const testing::AttentionAnswer five = testing::attention_answer(q, kv, options);
    omp_set_num_threads(before);
    EXPECT_TRUE(testing::same_bytes(one.y, five.y));
    EXPECT_TRUE(testing::same_bytes(one.grad_q, five.grad_q));
    EXPECT_TRUE(testing::same_bytes(one.grad_k, five.grad_k));
    EXPECT_TRUE(testing::same_bytes(one.grad_v, five.grad_v));
  }
}

TEST(SparseAttention, PackedProjectionsGiveTheSame) {
  const std::int64_t s = 83, heads = 3, width = 16;
  const AttentionOptions options{.pattern = pattern(s, heads, 4, 0.3)};
  const Tensor qkv = testing::random_values({1, s, 3 * heads * width}, 1);
  const Tensor parts = qkv.reshape({1, s, 3 * heads, width});
  const auto part = [&](std::int64_t i) { return Var(parts.slice(2, i * heads, (i + 1) * heads).contiguous()); };
  const Tensor packed = packed_attention(Var(qkv), heads, heads, options).value();
  EXPECT_TRUE(testing::same_bytes(packed.reshape({1, s, heads, width}), attention(part(0), part(1), part(2), options).value()));
}

// One query after another, as in generation.
TEST(SparseAttention, LaterQueriesAloneGiveTheSame) {
  const std::int64_t s = 140;
  const Shape shape{1, s, 2, 8};
  for (const std::int64_t block : {1, 16}) {
    const AttentionOptions options{.pattern = pattern(200, 2, 6, 0.3, block)};
    const Tensor q = testing::random_values(shape, 1), k = testing::random_values(shape, 2), v = testing::random_values(shape, 3);
    const Tensor whole = attention(Var(q), Var(k), Var(v), options).value();
    for (const std::int64_t length : {1, 2, 64, 65, 139}) {
      const auto first = [&](const Tensor& x) { return Var(x.slice(1, 0, length).contiguous()); };
      const Var last(q.slice(1, length - 1, length).contiguous());
      const Tensor one = attention(last, first(k), first(v), options).value();
      EXPECT_LT(relative_error(one, whole.slice(1, length - 1, length).contiguous()), 1e-6) << length;
    }
  }
}

TEST(SparseAttention, NeedsNoMoreMemoryThanDenseAttention) {
  const Shape shape{1, 1024, 2, 64};
  const auto most = [&](const AttentionOptions& options) {
    const Var q(testing::random_values(shape, 1), true), k(testing::random_values(shape, 2), true),
        v(testing::random_values(shape, 3), true);
    const MemoryHistory history(Device::cpu());
    backward(sum(attention(q, k, v, options)));
    return std::ranges::max(history.in_use()) - history.in_use().front();
  };
  const cpu::OneThread alone;  // with several threads, one may end before another begins
  const std::size_t dense = most({.causal = true}), elements = most({.pattern = pattern(1024, 2, 64, 0.05)}),
                    blocks = most({.pattern = pattern(1024, 2, 64, 0.05, 16)});
  EXPECT_LE(elements, dense);
  EXPECT_LE(blocks, dense);
}

TEST(SparseAttention, OperandsThatDoNotFitAreNamed) {
  const auto message = [](const Shape& q, const Shape& kv, const AttentionPatternPtr& of, const AttentionOptions& options = {}) {
    return message_of<Error>(
        [&] { sparse_attention(Var(Tensor::zeros(q)), Var(Tensor::zeros(kv)), Var(Tensor::zeros(kv)), of, options); });
  };
  const Shape x{1, 5, 4, 8};
  const std::string fits = "; needs its heads, at most its positions, and no more queries than keys";
  EXPECT_EQ(message(x, x, pattern(5, 2, 1, 0)),
            "attention: q is [1, 5, 4, 8], k is [1, 5, 4, 8], the pattern has 2 heads and 5 positions" + fits);
  EXPECT_EQ(message(x, x, pattern(4, 4, 1, 0)),
            "attention: q is [1, 5, 4, 8], k is [1, 5, 4, 8], the pattern has 4 heads and 4 positions" + fits);
  EXPECT_EQ(message(x, {1, 3, 4, 8}, pattern(5, 4, 1, 0)),
            "attention: q is [1, 5, 4, 8], k is [1, 3, 4, 8], the pattern has 4 heads and 5 positions" + fits);
  EXPECT_EQ(message(x, x, nullptr), "sparse_attention: no pattern is given; needs one, beside the options");
  EXPECT_EQ(message(x, x, pattern(5, 4, 1, 0), {.causal = true}),
            "attention: causal or window is given beside a pattern; needs one of them, because a pattern is causal or not, and "
            "has a band");
}

TEST(SparseAttention, CountsTheMultiplyAddsOfThePairsThatItHas) {
  const AttentionPatternPtr of = pattern(100, 2, 7, 0.2);
  const Shape shape{3, 100, 2, 16};
  std::int64_t band = 0;
  for (std::int64_t i = 0; i < 100; ++i) band += std::min<std::int64_t>(i + 1, 7);
  const Var q(testing::random_values(shape, 1), true);
  const Var y = sparse_attention(q, q, q, of);
  EXPECT_EQ(y.node()->op->name(), "sparse_attention");
  EXPECT_EQ(y.node()->op->multiply_adds(shape), 2 * 3 * 16 * 2 * (band + of->kept()));
}

}  // namespace
}  // namespace tessera
