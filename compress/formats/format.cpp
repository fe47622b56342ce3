#include "compress/formats/format.h"

#include <algorithm>

#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/linear.h"

namespace tessera {
namespace {

// All but batch and channels.
std::int64_t positions(const Shape& shape) { return shape.erase(shape.rank() - 1).erase(0).numel(); }

}  // namespace

std::optional<DenseLayer> dense_layer(const Module& module, const LayerCost& row) {
  DenseLayer layer{.module = &module, .path = module.path(), .input_positions = 1, .output_positions = 1};
  if (const auto* conv = dynamic_cast<const Conv2d*>(&module)) {
    const Conv2dConfig& options = conv->options();
    layer.out = options.out;
    layer.in = options.in;
    layer.kernel = options.kernel;
    layer.groups = options.groups;
    layer.bias = options.bias;
  } else if (const auto* linear = dynamic_cast<const Linear*>(&module)) {
    layer.out = linear->options().out;
    layer.in = linear->options().in;
    layer.bias = linear->options().bias;
  } else {
    return std::nullopt;
  }
  layer.input_positions = positions(row.input);
  layer.output_positions = positions(row.output);
  return layer;
}

void ProjectOptions::fields(Fields& f) {
  f.add("iterations", iterations,
        {.help = "most sweeps over the factors; 0 = the start alone",
         .range = non_negative,
         .example = "10",
         .observable = "bytes"});
  f.add("tolerance", tolerance,
        {.help = "stop when a sweep lowers the relative error by less",
         .range = non_negative,
         .example = "0.01",
         .observable = "bytes"});
}

const Tensor& DenseLayer::weight() const { return module->parameter("weight").value(); }

std::int64_t rank_of(const Ranks& ranks, std::string_view name) {
  const auto found = std::ranges::find(ranks, name, &Rank::name);
  TESSERA_CHECK(found != ranks.end(), InternalError, "ranks ", to_string(ranks), ": no rank '", name, "'");
  return found->value;
}

bool is_form_of(const Format& format, const Module& module) {
  return std::ranges::find(format.kinds(), module.kind()) != format.kinds().end();
}

}  // namespace tessera
