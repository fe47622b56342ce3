// Rows for attention with a sparse pattern.
#include <algorithm>
#include <cstdlib>

#include "core/ops/sparse_attention.h"
#include "tests/support/attention_reference.h"
#include "tests/support/op_cases.h"

namespace tessera::testing {
namespace {

struct Row {
  std::string name;
  AttentionPatternOptions pattern;
  std::int64_t batch, queries, keys, kv_heads, width;
  bool key_mask = false;  // of three sequences, one sees no key, one all, one two keys of three
  double dropout = 0;
};

// Whether the pattern has the pair by its definition: the pair is in the band or in a kept unit.
bool sees(const AttentionPattern& pattern, std::int64_t head, std::int64_t query, std::int64_t key) {
  const AttentionPatternOptions& o = pattern.options();
  if (o.causal && key > query) return false;
  const std::int64_t from = query / o.block, to = key / o.block;
  // The nearest pair of two blocks: the last position of the lower block and the first of the higher one.
  const std::int64_t nearest = from == to ? 0 : (std::abs(from - to) - 1) * o.block + 1;
  return nearest < o.band || std::ranges::count(pattern.row(head, from), to) == 1;
}

OpCase case_of(const Row& row) {
  const auto pattern = std::make_shared<const AttentionPattern>(row.pattern);
  const Shape kv{row.batch, row.keys, row.kv_heads, row.width};
  const auto dropped = std::make_shared<DroppedProbabilities>(row.dropout);
  OpCase c = op_case(
      "sparse_attention/" + row.name, {{row.batch, row.queries, row.pattern.heads, row.width}, kv, kv},
      [pattern, dropped](std::span<const Var> in) {
        AttentionOptions options;
        dropped->add_to(options, in[0].device());
        if (in.size() > 3) options.key_mask = in[3].value().to(DType::u8);
        return sparse_attention(in[0], in[1], in[2], pattern, options);
      },
      [pattern, dropped, keys = row.keys](std::span<const Tensor> in) {
        return attention_reference(
            in, [&](std::int64_t head, std::int64_t position, std::int64_t key) { return sees(*pattern, head, position, key); },
            dropped->factor(keys));
      });
  for (OpInput& input : c.inputs) input.low = -2, input.high = 2;  // far from equal probabilities
  if (row.key_mask) {
    std::vector<std::int64_t> mask(static_cast<std::size_t>(row.batch * row.keys));
    for (std::int64_t sequence = 0; sequence < row.batch; ++sequence) {
      for (std::int64_t key = 0; key < row.keys; ++key) {
        mask[static_cast<std::size_t>(sequence * row.keys + key)] = sequence % 3 == 1 || (sequence % 3 == 2 && key % 3 != 1);
      }
    }
    c.inputs.push_back({.shape = {row.batch, row.keys}, .differentiable = false, .indices = mask});
  }
  return c;
}

AttentionPatternOptions pattern(std::int64_t positions, std::int64_t heads, std::int64_t band, double density, std::int64_t block,
                                bool causal) {
  return {.positions = positions,
          .heads = heads,
          .band = band,
          .density = density,
          .block = block,
          .causal = causal,
          .stream = RngStream(3, "op_cases", "pattern")};
}

}  // namespace

std::vector<OpCase> sparse_attention_op_cases() {
  std::vector<OpCase> cases;
  for (const Row& row : std::vector<Row>{{"elements", pattern(67, 2, 3, 0.1, 1, false), 2, 67, 67, 2, 5},
                                         {"elements_causal", pattern(131, 2, 9, 0.15, 1, true), 1, 131, 131, 2, 16},
                                         {"elements_all", pattern(70, 1, 1, 1, 1, false), 1, 70, 70, 1, 33},
                                         {"elements_shorter", pattern(131, 2, 5, 0.3, 1, false), 1, 67, 67, 1, 7},
                                         {"elements_after_others", pattern(131, 1, 4, 0.3, 1, true), 2, 3, 101, 1, 9},
                                         {"elements_across_tiles", pattern(131, 1, 4, 0.2, 1, true), 1, 73, 103, 1, 8},
                                         {"elements_key_mask", pattern(71, 2, 2, 0.2, 1, true), 3, 71, 71, 1, 6, true},
                                         {"elements_columns_128", pattern(37, 2, 3, 0.3, 1, true), 1, 37, 37, 1, 128},
                                         {"elements_dropout", pattern(67, 2, 3, 0.2, 1, true), 1, 67, 67, 2, 5, false, 0.4},
                                         {"elements_grouped", pattern(37, 6, 2, 0.3, 1, true), 1, 37, 37, 2, 8},
                                         {"only_itself", pattern(19, 2, 1, 0, 1, true), 1, 19, 19, 2, 4},
                                         {"blocks", pattern(149, 2, 17, 0.2, 16, false), 1, 149, 149, 2, 7},
                                         {"blocks_causal", pattern(131, 2, 20, 0.4, 16, true), 1, 131, 131, 1, 16},
                                         {"blocks_of_32", pattern(167, 1, 1, 0.5, 32, true), 1, 167, 167, 1, 5},
                                         {"blocks_all", pattern(101, 1, 1, 1, 16, false), 1, 101, 101, 1, 3},
                                         {"blocks_shorter", pattern(300, 1, 1, 0.4, 16, false), 1, 103, 103, 1, 6},
                                         {"blocks_after_others", pattern(200, 1, 16, 0.5, 32, true), 1, 41, 187, 1, 4},
                                         {"blocks_key_mask", pattern(100, 2, 1, 0.5, 16, false), 3, 100, 100, 2, 4, true},
                                         {"blocks_columns_80", pattern(70, 1, 1, 0.5, 16, false), 1, 70, 70, 1, 80},
                                         {"blocks_dropout", pattern(90, 2, 16, 0.4, 16, true), 3, 90, 90, 1, 6, true, 0.3},
                                         {"one_position", pattern(5, 2, 2, 0.5, 1, true), 2, 1, 1, 2, 3}}) {
    cases.push_back(with_rounded_probabilities(case_of(row)));
  }
  return cases;
}

}  // namespace tessera::testing
