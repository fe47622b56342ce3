// Rows for attention.
#include <cmath>
#include <cstdlib>

#include "core/ops/attention.h"
#include "core/ops/rotary.h"
#include "tests/support/attention_reference.h"
#include "tests/support/op_cases.h"
#include "tests/support/reference.h"

namespace tessera::testing {
namespace {

struct Heads {
  std::int64_t batch, queries, keys, heads, kv_heads, width;
};

struct Row {
  std::string name;
  Heads size;
  bool causal = false;
  std::int64_t window = 0;
  std::vector<std::int64_t> key_mask = {};
  double dropout = 0;
};

Sees sees(const Row& row) {
  return [row](std::int64_t, std::int64_t position, std::int64_t key) {
    if (row.causal && key > position) return false;
    return row.window == 0 || std::abs(position - key) < row.window;
  };
}

OpCase case_of(const Row& row) {
  const auto& [batch, queries, keys, heads, kv_heads, width] = row.size;
  const Shape kv{batch, keys, kv_heads, width};
  const auto dropped = std::make_shared<DroppedProbabilities>(row.dropout);
  OpCase c = op_case(
      "attention/" + row.name, {{batch, queries, heads, width}, kv, kv},
      [row, dropped](std::span<const Var> in) {
        AttentionOptions options{.causal = row.causal, .window = row.window};
        dropped->add_to(options, in[0].device());
        if (in.size() > 3) options.key_mask = in[3].value().to(DType::u8);
        return attention(in[0], in[1], in[2], options);
      },
      [row, dropped](std::span<const Tensor> in) { return attention_reference(in, sees(row), dropped->factor(row.size.keys)); });
  for (OpInput& input : c.inputs) input.low = -2, input.high = 2;  // far from equal probabilities
  if (!row.key_mask.empty()) c.inputs.push_back({.shape = {batch, keys}, .differentiable = false, .indices = row.key_mask});
  return c;
}

// q, k and v are parts of one tensor.
OpCase packed_case(const Row& row) {
  const auto& [batch, queries, keys, heads, kv_heads, width] = row.size;
  const std::int64_t columns = (heads + 2 * kv_heads) * width;
  const auto dropped = std::make_shared<DroppedProbabilities>(row.dropout);
  OpCase c = op_case(
      "attention/" + row.name, {{batch, queries, columns}},
      [row, dropped](std::span<const Var> in) {
        AttentionOptions options{.causal = row.causal, .window = row.window};
        dropped->add_to(options, in[0].device());
        if (in.size() > 1) options.key_mask = in[1].value().to(DType::u8);
        return packed_attention(in[0], row.size.heads, row.size.kv_heads, options);
      },
      [row, dropped](std::span<const Tensor> in) {
        const auto part = [&](std::int64_t first, std::int64_t count) {
          return build({row.size.batch, row.size.keys, count, row.size.width},
                       [&](const Index& i) { return at(in[0], i[0], i[1], (first + i[2]) * row.size.width + i[3]); });
        };
        const Heads& size = row.size;
        std::vector<Tensor> parts{part(0, size.heads), part(size.heads, size.kv_heads),
                                  part(size.heads + size.kv_heads, size.kv_heads)};
        if (in.size() > 1) parts.push_back(in[1]);
        return attention_reference(parts, sees(row), dropped->factor(size.keys))
            .reshape({size.batch, size.queries, size.heads * size.width});
      });
  if (!row.key_mask.empty()) c.inputs.push_back({.shape = {batch, keys}, .differentiable = false, .indices = row.key_mask});
  return c;
}

// One sequence sees nothing, one everything, and one its beginning except for a hole.
std::vector<std::int64_t> some_keys(std::int64_t keys) {
  std::vector<std::int64_t> mask(static_cast<std::size_t>(3 * keys), 0);
  for (std::int64_t j = 0; j < keys; ++j) {
    mask[static_cast<std::size_t>(keys + j)] = 1;
    mask[static_cast<std::size_t>(2 * keys + j)] = j < 2 * keys / 3 && j != 1;
  }
  return mask;
}

// Rotates the first heads of a tensor [batch, positions, heads, width].
OpCase rotary_case(const std::string& name, const Shape& shape, const RotaryOptions& options) {
  return op_case(
      "rotary/" + name, {shape}, [options](std::span<const Var> in) { return rotary(in[0], options); },
      [options](std::span<const Tensor> in) {
        const std::int64_t half = in[0].dim(3) / 2;
        return build(in[0].shape(), [&](const Index& i) {
          if (i[2] >= options.heads) return element(in[0], i);
          const bool second = i[3] >= half;
          const std::int64_t pair = second ? i[3] - half : i[3];
          const double rate = std::pow(options.base, -static_cast<double>(pair) / static_cast<double>(half));
          const double angle = static_cast<double>(options.offset + i[1]) * rate;
          const double partner = at(in[0], i[0], i[1], i[2], second ? pair : pair + half);
          return element(in[0], i) * std::cos(angle) + (second ? partner : -partner) * std::sin(angle);
        });
      });
}

}  // namespace

OpCase with_rounded_probabilities(OpCase row) {
  row.bf16_result_roundings = 2;
  row.bf16_roundings = 6;
  return row;
}

static std::vector<OpCase> rotary_op_cases() {
  return {rotary_case("all_heads", {2, 5, 3, 6}, {.heads = 3}),
          rotary_case("some_heads", {2, 7, 5, 26}, {.heads = 2, .offset = 11, .base = 500}),
          rotary_case("packs", {1, 19, 3, 64}, {.heads = 2, .offset = 1}),
          rotary_case("width2", {3, 4, 1, 2}, {.heads = 1}),
          rotary_case("threads", {2, 67, 4, 80}, {.heads = 3}),
          rotary_case("batch0", {0, 3, 2, 4}, {.heads = 1}),
          rotary_case("positions0", {2, 0, 2, 4}, {.heads = 1}),
          rotary_case("width0", {2, 3, 2, 0}, {.heads = 1})};
}

std::vector<OpCase> attention_op_cases() {
  std::vector<OpCase> cases = rotary_op_cases();
  for (const Row& row : std::vector<Row>{{"all_keys", {2, 7, 7, 3, 3, 5}},
                                         {"causal", {1, 67, 67, 2, 2, 16}, true},
                                         {"causal_many_tiles", {1, 131, 131, 1, 1, 33}, true},
                                         {"causal_after_others", {2, 3, 11, 2, 2, 8}, true},
                                         {"more_queries_than_keys", {1, 9, 4, 1, 1, 6}, true},
                                         {"band", {1, 70, 70, 1, 1, 9}, false, 5},
                                         {"causal_band", {1, 101, 101, 1, 1, 7}, true, 17},
                                         {"cross", {2, 5, 53, 2, 2, 12}},
                                         {"grouped", {2, 13, 13, 6, 2, 8}, true},
                                         {"one_head_of_keys", {1, 9, 9, 4, 1, 40}},
                                         {"key_mask", {3, 10, 10, 2, 1, 6}, false, 0, some_keys(10)},
                                         {"causal_key_mask", {3, 51, 51, 1, 1, 4}, true, 0, some_keys(51)},
                                         {"causal_band_key_mask", {3, 51, 51, 2, 1, 6}, true, 9, some_keys(51)},
                                         {"band_key_mask_grouped", {3, 70, 70, 4, 2, 5}, false, 7, some_keys(70)},
                                         {"columns_32", {2, 35, 35, 2, 2, 32}, true, 9},
                                         {"columns_64", {1, 67, 67, 2, 1, 64}, true},
                                         {"columns_80", {1, 19, 19, 2, 1, 80}, true},
                                         {"columns_128", {1, 67, 67, 2, 2, 128}, true},
                                         {"columns_200", {1, 9, 21, 1, 1, 200}},
                                         {"dropout", {2, 37, 37, 2, 2, 9}, true, 0, {}, 0.4},
                                         {"dropout_grouped_band_key_mask", {3, 66, 66, 4, 2, 16}, false, 11, some_keys(66), 0.3},
                                         {"one_position", {2, 1, 1, 2, 2, 3}, true},
                                         {"width1", {1, 5, 5, 2, 2, 1}},
                                         {"no_keys", {1, 3, 0, 1, 1, 4}},
                                         {"no_queries", {2, 0, 5, 2, 2, 4}, true},
                                         {"one_query", {1, 1, 300, 3, 3, 64}, true},
                                         {"one_query_of_many_keys", {1, 1, 1100, 2, 1, 16}, true},
                                         {"few_queries", {2, 3, 75, 4, 2, 16}, true},
                                         {"few_queries_band", {2, 2, 131, 2, 1, 48}, true, 40},
                                         {"few_queries_key_mask", {3, 4, 50, 2, 1, 32}, true, 0, some_keys(50)},
                                         {"few_queries_no_keys", {1, 2, 0, 1, 1, 16}},
                                         {"batch0", {0, 3, 3, 2, 2, 4}}}) {
    cases.push_back(with_rounded_probabilities(case_of(row)));
  }
  cases.push_back(with_rounded_probabilities(packed_case({"packed", {2, 19, 19, 3, 3, 7}, true})));
  cases.push_back(with_rounded_probabilities(packed_case({"packed_grouped", {1, 66, 66, 4, 2, 16}, true})));
  cases.push_back(with_rounded_probabilities(packed_case({"packed_dropout_band", {2, 67, 67, 2, 1, 16}, true, 9, {}, 0.3})));
  cases.push_back(with_rounded_probabilities(packed_case({"packed_key_mask", {3, 35, 35, 2, 2, 9}, false, 0, some_keys(35)})));
  return cases;
}

}  // namespace tessera::testing
