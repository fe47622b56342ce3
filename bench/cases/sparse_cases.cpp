#include "bench/cases/sparse_cases.h"

#include <cmath>

#include "bench/cases/dense_cases.h"
#include "compress/formats/sparse_layer.h"
#include "compress/patterns/builtin.h"
#include "compress/prune/scores.h"
#include "core/support/error.h"
#include "layers/compressed.h"

namespace tessera::bench {

std::string name_of(const PatternConfig& pattern) {
  if (pattern.pattern == "block") return str("block ", pattern.block.value_or(Extent{16, 16}));
  if (pattern.group) return str(pattern.pattern, ' ', *pattern.group);
  return pattern.pattern;
}

Tensor pattern_mask(const PatternConfig& pattern, double density, const Tensor& weight) {
  const Tensor scores = magnitudes(weight);
  const std::int64_t kept = std::llround(density * static_cast<double>(scores.numel()));
  return make_pattern(pattern)->project({&scores, 1}, kept).front();
}

LayerPair sparse_pair(const SparseCase& of) {
  const std::shared_ptr<Module> dense = dense_of(of.shape);
  Parameter& weight = dense->parameter("weight");
  weight.set_value(random_tensor(weight.value().shape(), "weight"));
  weight.set_mask(pattern_mask(of.pattern, of.density, weight.value()));
  return {name_of(of.pattern), of.shape, sparse_layer(*dense), dense, random_tensor(input_of(of.shape), "x")};
}

Value describe_sparse(const SparseCase& of, const LayerPair& pair, Phase phase) {
  const auto kept = static_cast<double>(as_compressed(*pair.compressed)->ranks().front().value);
  Value row = Value::map();
  row.set("format", name_of(of.pattern));
  row.set("density", kept / static_cast<double>(pair.dense->parameter("weight").value().numel()));
  row.set("shape", to_string(of.shape));
  row.set("phase", phase == Phase::inference ? "forward" : "training");
  row.set("weights", phase == Phase::inference ? "constant" : "changing");
  return row;
}

Value measure_sparse(const SparseCase& of, const LayerPair& pair, Phase phase, const TurnOptions& turns, double peak_gflops) {
  Value row = measure_pair(pair, describe_sparse(of, pair, phase), phase, turns);
  row.set("peak_share", row.at("factored").at("gflops").as_double() / peak_gflops);
  row.set("fma_peak_gflops", peak_gflops);
  return row;
}

}  // namespace tessera::bench
