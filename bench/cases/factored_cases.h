// A compressed layer beside the dense layers that compute the same function: ours, and oneDNN called directly.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "bench/dense_shapes.h"
#include "bench/turns.h"
#include "compress/formats/format.h"
#include "compress/timing/latency.h"

namespace tessera::bench {

struct LinearShape {
  std::int64_t rows, in, out;
};
std::string to_string(const LinearShape& shape);  // "64x1024 -> 1024"

// One group, no bias.
using LayerShape = std::variant<ConvShape, LinearShape>;
std::string to_string(const LayerShape& shape);
std::shared_ptr<Module> dense_of(const LayerShape& shape);
Shape input_of(const LayerShape& shape);

struct FactoredCase {
  std::string format;
  Ranks ranks;
  LayerShape shape;
  std::optional<ModesConfig> modes = {};  // of a format that splits channels
};

struct FactoredSides {
  FactoredCase of;
  std::shared_ptr<Module> factored, dense;
  Tensor x;
};

// Random factors, and the dense layer of the weight that they compose.
FactoredSides make_sides(const FactoredCase& of);

// One inference, or one forward and backward to the input, whose gradient is then the result, and every parameter.
Contestant layer_side(std::string name, std::shared_ptr<Module> layer, const Tensor& input, Phase phase);
Tensor gradient_of_output(const Module& layer, const Shape& input);  // that backwards begin with

// Format, shape, ranks ("out 64 in 64"), phase (forward, which is inference, or training), weights (constant or changing).
Value describe_factored(const FactoredSides& sides, Phase phase);

// A step of a compressed layer, alone.
struct Part {
  Contestant side;
  double flops;
  std::string order = {};  // that it is a step of, where the layer has more than one
};

// Layers that compute the same.
struct LayerPair {
  std::string name;  // of the compressed one
  LayerShape shape;
  std::shared_ptr<Module> compressed, dense;
  Tensor x;  // f32
  DType compute = DType::f32;  // of both layers; what oneDNN is called for directly stays f32
  std::function<std::vector<Part>(Phase)> parts = {};  // steps of the compressed layer, made where the sides are
  std::function<Part(Phase)> beside = {};  // a library's calls for as many multiply-adds; may be unset
};

// oneDNN's fastest calls for a convolution and for a product of that shape: in training the forward and both gradients. The
// convolution's operands may lie in blocks.
Part conv_part(const std::string& name, const ConvShape& shape, Phase phase);
Part product_part(const std::string& name, const LinearShape& shape, Phase phase);

// Times all sides under a DecisionScope of its own: in inference every side keeps what it derives from its constant weights,
// training is forward and both backwards. Throws NumericError when they compute different things, InternalError where
// oneDNN has no fast way.
// The line: the keys of `row`, rounds; factored (the compressed layer), rival (the fastest dense side), other_dense and each of
// parts, which are the factored layer's own steps alone, of a tensor train oneDNN's calls for them, as {name, ms, gflops};
// floors, the sum of the parts, of a linear train one for each order of its halves; library_floor, where the pair has one beside
// it; ratio (rival / factored), flop_ratio; of a convolution blocked_dense and blocked_ratio; decisions.
Value measure_pair(const LayerPair& pair, Value row, Phase phase, const TurnOptions& turns);
// The same with describe_factored() as row.
Value measure_phase(const FactoredSides& sides, Phase phase, const TurnOptions& turns);

}  // namespace tessera::bench
