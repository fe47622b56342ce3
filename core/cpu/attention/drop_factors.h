// What dropout multiplies probabilities by. Included like kernels.h.
#pragma once

#include <cstdint>

#include "core/cpu/attention/arrays.h"
#include "core/cpu/attention/chunks.h"
#include "core/cpu/attention/problem.h"
#include "core/cpu/attention/sight.h"

namespace tessera::cpu::attention {
namespace {

// factors [count][kQueries]: 1 / (1 - rate) where the probability of a lane's query and a key is kept, else 0; of the tile's
// lanes.
inline void drop_factors(const Dropout& dropout, const AttentionForm& form, const Queries& queries, const KeyTile& keys,
                         float* factors) {
  const auto kept = static_cast<float>(1 / (1 - dropout.rate));
  for (std::int64_t j = 0; j < keys.count; j += 4) {
    for (std::int64_t i = keys.lane; i < keys.lane + keys.lanes; ++i) {
      const auto words = random_words(dropout.stream, dropout.step, form.random_block(queries.row + i, keys.first + j));
      for (std::int64_t w = 0; w < lesser(4, keys.count - j); ++w) {
        factors[(j + w) * kQueries + i] = is_kept(words[static_cast<std::size_t>(w)], dropout.threshold) ? kept : 0.0F;
      }
    }
  }
}

// values [count][kQueries] *= factors, in the tile's lanes.
inline void multiply_lanes(const float* factors, const KeyTile& keys, float* values) {
  for (std::int64_t j = 0; j < keys.count; ++j) {
    multiply_all(factors + j * kQueries + keys.lane, keys.lanes, values + j * kQueries + keys.lane);
  }
}

// factors [elements]: 1 / (1 - rate) where a probability is kept, else 0.
inline void drop_factors(const Dropout& dropout, const AttentionForm& form, const Queries& queries, const Chunk& chunk,
                         float* factors) {
  const auto kept = static_cast<float>(1 / (1 - dropout.rate));
  for_each_run(chunk, [&](std::int64_t key, const std::uint8_t* lanes, std::int64_t count, std::int64_t at) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto words = random_words(dropout.stream, dropout.step, form.random_block(queries.row + lanes[i], key));
      factors[at + i] = is_kept(words[static_cast<std::size_t>(key % 4)], dropout.threshold) ? kept : 0.0F;
    }
  });
}

}  // namespace
}  // namespace tessera::cpu::attention
