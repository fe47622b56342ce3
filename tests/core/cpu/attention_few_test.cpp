// Compares the few-query kernels of every instruction set with double, whichever set this processor would choose.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/cpu/attention/problem.h"
#include "core/rng.h"
#include "core/tensor.h"
#include "tests/support/each_isa.h"
#include "tests/support/relative_error.h"

namespace tessera::cpu::attention {
namespace {

struct Form {
  std::int64_t queries, keys, heads, kv_heads, width;
  bool causal = false;
  std::int64_t window = 0;
  bool masked = false;

  AttentionForm of() const { return {1, queries, keys, heads, kv_heads, width, causal, window, 0.3}; }
};

// [positions, heads + 1, width]: the last head belongs to no operand. It makes the rows strided.
template <class T>
Tensor random(std::int64_t positions, std::int64_t heads, std::int64_t width, std::uint64_t index) {
  const Tensor x = Tensor::empty({positions, heads + 1, width});
  fill_uniform(x, RngStream(3, "attention_few_test", "values"), -2, 2, index);
  return x.to(dtype_of<T>);
}

template <class T>
HeadRows<T> rows_of(const Tensor& x) {
  return {x.data<T>(), x.strides()[0], x.strides()[1]};
}

struct Operands {
  AttentionForm form;
  Tensor q, k, v;
  std::vector<std::uint8_t> mask;

  bool sees(std::int64_t query, std::int64_t key) const {
    return key >= form.first_key(query) && key < form.end_key(query) &&
           (mask.empty() || mask[static_cast<std::size_t>(key)] != 0);
  }
};

template <class T>
Operands operands_of(const Form& form) {
  Operands o{form.of(),
             random<T>(form.queries, form.heads, form.width, 1),
             random<T>(form.keys, form.kv_heads, form.width, 2),
             random<T>(form.keys, form.kv_heads, form.width, 3),
             {}};
  for (std::int64_t j = 0; form.masked && j < form.keys; ++j) o.mask.push_back(j % 3 != 1 && j > 20);
  return o;
}

double at(const Tensor& wide, std::int64_t position, std::int64_t head, std::int64_t c) {
  return wide.data<double>()[position * wide.strides()[0] + head * wide.strides()[1] + c];
}

struct Answer {
  std::vector<double> y, log_sums;
};

// Attention by its definition, row by row.
Answer in_double(const Operands& o) {
  const AttentionForm& f = o.form;
  const Tensor q = o.q.to(DType::f64), k = o.k.to(DType::f64), v = o.v.to(DType::f64);
  Answer answer;
  for (std::int64_t row = 0; row < f.heads * f.queries; ++row) {
    const std::int64_t head = row / f.queries, i = row % f.queries, kv = head / f.group();
    double total = 0;
    std::vector<double> y(static_cast<std::size_t>(f.width), 0.0);
    for (std::int64_t j = 0; j < f.keys; ++j) {
      if (!o.sees(i, j)) continue;
      double score = 0;
      for (std::int64_t c = 0; c < f.width; ++c) score += at(q, i, head, c) * at(k, j, kv, c);
      const double power = std::exp(f.scale * score);
      total += power;
      for (std::int64_t c = 0; c < f.width; ++c) y[static_cast<std::size_t>(c)] += power * at(v, j, kv, c);
    }
    for (const double sum : y) answer.y.push_back(total == 0 ? 0 : sum / total);
    answer.log_sums.push_back(total == 0 ? 0 : std::log(total));
  }
  return answer;
}

class FewQueriesKernels : public tessera::testing::EachIsa {
 protected:
  template <class T>
  void see(const FewQueries<T>& queries, std::int64_t first, std::int64_t end, const FewSums& sums, std::int64_t step) const {
    if constexpr (std::is_same_v<T, float>)
      used->see_chunk(queries, first, end, sums, step);
    else
      used->see_chunk_bf16(queries, first, end, sums, step);
  }

  // Runs the kernels in chunks of `size` keys, on memory that held NaN.
  template <class T>
  Answer run(const Operands& o, std::int64_t size) const {
    const AttentionForm& f = o.form;
    const std::int64_t rows = f.heads * f.queries, count = (f.keys + size - 1) / size;
    const std::int64_t step = (count + kLanes - 1) / kLanes * kLanes;
    std::vector<float> tops(static_cast<std::size_t>(rows * step), std::numeric_limits<float>::lowest()),
        totals(tops.size(), 0.0F);
    std::vector<float> sums(static_cast<std::size_t>(count * rows * f.width), NAN), y(static_cast<std::size_t>(f.width));
    const FewQueries<T> queries{f, rows_of<T>(o.q), rows_of<T>(o.k), rows_of<T>(o.v), o.mask.empty() ? nullptr : o.mask.data()};
    for (std::int64_t c = 0; c < count; ++c) {
      const FewSums to{tops.data() + c, totals.data() + c, sums.data() + c * rows * f.width};
      see<T>(queries, c * size, std::min((c + 1) * size, f.keys), to, step);
    }
    Answer answer;
    for (std::int64_t row = 0; row < rows; ++row) {
      const ChunkSums chunks{sums.data() + row * f.width, rows * f.width, count, f.width};
      answer.log_sums.push_back(used->join_chunks(tops.data() + row * step, totals.data() + row * step, chunks, y.data()));
      answer.y.insert(answer.y.end(), y.begin(), y.end());
    }
    return answer;
  }

  template <class T>
  void expect_right(const Form& form) const {
    const Operands o = operands_of<T>(form);
    const Answer want = in_double(o);
    for (const std::int64_t size : {16, 48, 512}) {
      const Answer got = run<T>(o, size);
      EXPECT_LE(relative_error(got.y, want.y), 2e-6) << form.keys << " keys in chunks of " << size;
      for (std::size_t row = 0; row < want.log_sums.size(); ++row) {  // a score is a sum that may cancel: absolute bound
        EXPECT_NEAR(got.log_sums[row], want.log_sums[row], 1e-5) << form.keys << " keys in chunks of " << size;
      }
    }
  }

  const Kernels* used = one_of(kAvx2Kernels, kAvx512Kernels);
};

// Widths of one to several vectors, with remainders; partial blocks of keys; grouped heads; keys that some queries do not see.
TEST_P(FewQueriesKernels, AgreeWithDouble) {
  for (const Form& form : {Form{1, 1, 1, 1, 16}, Form{1, 37, 3, 3, 64, true}, Form{3, 131, 4, 2, 48, true}, Form{2, 16, 6, 1, 32},
                           Form{3, 100, 2, 2, 80, true, 23}, Form{4, 75, 2, 1, 128, false, 9}, Form{1, 600, 2, 2, 16, true},
                           Form{4, 97, 2, 2, 112, true, 0, true}, Form{4, 3, 2, 2, 16, true}}) {
    expect_right<float>(form);
    expect_right<bfloat16>(form);
  }
}

TEST_P(FewQueriesKernels, LargeScoresNeitherOverflowNorVanish) {
  Operands o = operands_of<float>({1, 40, 1, 1, 16});
  for (std::int64_t c = 0; c < 16; ++c) o.q.data<float>()[c] = 100 * o.q.data<float>()[c];
  EXPECT_LE(relative_error(run<float>(o, 16).y, in_double(o).y), 1e-4);  // scores of a few hundred have errors of 1e-5
}

TEST_P(FewQueriesKernels, ANaNStaysInTheRowsThatSeeIt) {
  Operands o = operands_of<float>({4, 40, 1, 1, 16, true});
  o.k.data<float>()[38 * o.k.strides()[0]] = NAN;  // the last key but one
  const Answer answer = run<float>(o, 16);
  for (std::size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(std::isnan(answer.y[row * 16]), row >= 2) << row;
    EXPECT_EQ(std::isnan(answer.log_sums[row]), row >= 2) << row;
  }
}

// A block of keys that the mask hides completely is not read: its values may be anything.
TEST_P(FewQueriesKernels, ABlockThatTheMaskHidesIsNotRead) {
  Operands o = operands_of<float>({2, 80, 1, 1, 16, false, 0, true});
  std::fill(o.mask.begin() + 16, o.mask.begin() + 48, 0);
  const Answer want = in_double(o);
  for (std::int64_t key = 16; key < 48; ++key) {
    for (std::int64_t c = 0; c < 16; ++c) o.v.data<float>()[key * o.v.strides()[0] + c] = NAN;
  }
  EXPECT_LE(relative_error(run<float>(o, 80).y, want.y), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(Cpu, FewQueriesKernels, ::testing::Values("avx2", "avx512"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera::cpu::attention
