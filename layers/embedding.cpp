#include "layers/embedding.h"

#include "core/config/read.h"
#include "core/ops/cast.h"
#include "core/ops/dense_operands.h"
#include "core/ops/embedding.h"
#include "layers/init.h"

namespace tessera {

void EmbeddingConfig::fields(Fields& f) {
  f.add("vocabulary", vocabulary,
        {.help = "how many numbers there are", .range = at_least(1), .example = "50257", .observable = "plan"});
  f.add("width", width, {.help = "features of each", .range = at_least(1), .example = "768", .observable = "plan"});
}

Embedding::Embedding(const EmbeddingConfig& config)
    : config_(config),
      weight_(add_parameter("weight", Tensor::zeros({config.vocabulary, config.width}), ParameterRole::embedding)) {}

Value Embedding::config() const { return write(config_); }

Var Embedding::forward(const Var& x, const Context& context) {
  return cast(embedding(x.value(), weight_.var()), context.compute);
}

Shape Embedding::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 1 && input.rank() < Shape::kMaxRank, ShapeError, "embedding '", path(), "': input is ", input,
                "; needs [n, ...]");
  const Shape output = checked_size("embedding", input.append(config_.width));
  trace_leaf(trace, input, output, 0);
  return output;
}

void Embedding::reset_parameters(std::uint64_t seed) {
  init_normal(weight_, RngStream(seed, path(), "weight"), kInitialDeviation);
}

}  // namespace tessera
