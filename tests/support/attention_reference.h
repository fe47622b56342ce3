// Attention by its definition, one sum at a time, for tests of every rule for which keys are seen, and of dropped probabilities.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "core/device/step_state.h"
#include "core/ops/attention.h"
#include "core/tensor.h"

namespace tessera::testing {

// Which keys a head's query at `position` sees. The last query is at the last key's position.
using Sees = std::function<bool(std::int64_t head, std::int64_t position, std::int64_t key)>;

// What a probability is multiplied by; rows are [batch, heads, queries].
using ProbabilityFactor = std::function<double(std::int64_t row, std::int64_t key)>;

// in: q [batch, queries, heads, width], k and v [batch, keys, kv_heads, width], contiguous in f64, and, where there is one, a
// mask [batch, keys], 0 where no query sees the key. Returns y like q: sums of v by the softmax over the keys that are seen, 0
// where none is.
Tensor attention_reference(std::span<const Tensor> in, const Sees& sees, const ProbabilityFactor& factor = {});

// A row of attention whose options may drop probabilities: as AttentionOptions say of a state, at a step that is not the first.
class DroppedProbabilities {
 public:
  explicit DroppedProbabilities(double rate) : rate_(rate) {}
  // Of the device that the operands are on: the state is made there at the first call.
  void add_to(AttentionOptions& options, Device device);
  ProbabilityFactor factor(std::int64_t keys) const;  // empty without a rate

 private:
  double rate_;
  std::map<std::string, StepState> states_ = {};
};

}  // namespace tessera::testing
